/* SPDX-License-Identifier: MIT */
/*
 * What is at each path. The page comes from memory, with its style and script
 * inside, and with what it shows first, as data that no script engine looks at;
 * all else it asks for below /ui/api/. Paths that pprof's page has lead to the
 * same view here.
 *
 * Every answer forbids what the page does not need: scripts and styles but its
 * own, frames around it, other sites that read it.
 */
#include "cli/web/web.h"

#include "base/gzip.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "page/web/page.h"
#include "profile/gunzip.h"
#include "report/flame/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With the hashes of the page's style and script. */
#define POLICY                                                                 \
    "default-src 'none'; style-src %s; script-src %s; "                        \
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "        \
    "form-action 'none'; frame-ancestors 'none'; "                             \
    "require-trusted-types-for 'script'; trusted-types 'none'"

#define HTML      "text/html; charset=utf-8"
#define PLAIN     "text/plain; charset=utf-8"
#define N_HEADERS 8

/* Tunable. The width in pixels that these are made for; a page that is wider
 * asks for more when it has shown them. */
#define FIRST_WIDTH "2000"

/* Is there a body to be written? Then n bytes, or any number if it is -1. */
static bool
begin_body(struct cpprof__web_call *call, int status, const char *type,
           const struct cpprof_http_header *extra, int64_t n, int *failed)
{
    const struct cpprof_http_response *to = call->response;
    char policy[512];
    struct cpprof_http_header headers[N_HEADERS] = {
        {"Content-Type", type},
        {"Content-Security-Policy", policy},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };

    snprintf(policy, sizeof policy, POLICY, cpprof__web_page.style_hash,
             cpprof__web_page.script_hash);
    if (extra)
        headers[N_HEADERS - 1] = *extra;
    *failed = to->begin(to->ctx, status, headers, N_HEADERS - !extra, n);
    return !*failed && n && strcmp(call->request->method, "HEAD") != 0;
}

enum cpprof_status
cpprof__web_send(struct cpprof__web_call *call, int status, const char *type,
                 const struct cpprof_http_header *extra, const void *body,
                 size_t n)
{
    const struct cpprof_http_response *to = call->response;
    int failed;

    if (begin_body(call, status, type, extra, (int64_t)n, &failed))
        failed = to->write(to->ctx, body, n);
    return failed ? CPPROF_SYSTEM : CPPROF_OK;
}

enum cpprof_status
cpprof__web_say(struct cpprof__web_call *call, int status, const char *text)
{
    char line[1100];
    int n = snprintf(line, sizeof line, "%s\n", text);

    return cpprof__web_send(call, status, PLAIN, NULL, line, (size_t)n);
}

/* To another path, with the same query. */
static enum cpprof_status
redirect(struct cpprof__web_call *call, const char *before, const char *path)
{
    const char *query = call->request->query;
    struct cpprof_http_header location = {"Location", NULL};
    enum cpprof_status status;
    char *to;

    if (asprintf(&to, "%s%s%s%s%s", call->web->prefix, before, path,
                 query ? "?" : "", query ? query : "") < 0)
        return cpprof__web_say(call, 500, "out of memory");
    location.value = to;
    status = cpprof__web_send(call, 302, PLAIN, &location, "", 0);
    free(to);
    return status;
}

/* ---------------------------------------------------------------- status ----
 */

/* Append how far it is, and what the command was started with. Does that tell
 * why there is no profile? */
static bool
print_status(struct cpprof__web *web, struct cpprof__buffer *out)
{
    char what[256], why[CPPROF__CLI_SAID] = "";
    bool is_ready, is_over, is_stopped;
    unsigned turn;
    long seconds = cpprof__progress_now(what, sizeof what);

    pthread_mutex_lock(&web->lock);
    is_ready = web->profile != NULL;
    if (web->has_failed)
        cpprof__cli_said(why);
    web->has_page = true;
    web->asked_s = cpprof__web_now_s();
    turn = web->turn;
    is_over = web->is_over;
    is_stopped = web->is_stopped;
    pthread_mutex_unlock(&web->lock);
    cpprof__buffer_printf(out,
                          "{\"v\":1,\"ready\":%s,\"seconds\":%ld,"
                          "\"progress\":",
                          is_ready ? "true" : "false", is_ready ? 0 : seconds);
    cpprof__json_text(out, what, is_ready ? 0 : strlen(what));
    cpprof__buffer_printf(out,
                          ",\"live\":%s,\"over\":%s,\"stopped\":%s,"
                          "\"turn\":%u",
                          cpprof__live ? "true" : "false",
                          is_over ? "true" : "false",
                          is_stopped ? "true" : "false", turn);
    cpprof__buffer_printf(out, ",\"failed\":");
    cpprof__json_text(out, why, strlen(why));
    cpprof__buffer_printf(out, ",");
    cpprof__web_print_start(web, out);
    cpprof__buffer_printf(out, "}\n");
    return *why;
}

/* The page has been told. */
static void
note_told(struct cpprof__web *web, bool knows)
{
    pthread_mutex_lock(&web->lock);
    web->page_knows |= knows;
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
}

static enum cpprof_status
send_status(struct cpprof__web_call *call)
{
    struct cpprof__buffer out = {0};
    bool knows = print_status(call->web, &out);
    enum cpprof_status status =
        out.failed ? cpprof__web_say(call, 500, "out of memory")
                   : cpprof__web_send(call, 200, "application/json", NULL,
                                      out.data, out.n);

    cpprof__buffer_free(&out);
    note_told(call->web, knows);
    return status;
}

/* ------------------------------------------------------------------ page ----
 */

/* Has the query a parameter of one letter, with a value? */
static bool
has_value(const char *query, char name)
{
    const char *at = query;

    while (at && !(at[0] == name && at[1] == '=' && at[2] && at[2] != '&')) {
        at = strchr(at, '&');
        at += at != NULL;
    }
    return at;
}

/* Append what the page shows first: of flame graphs, their boxes. */
static void
print_first(const struct cpprof__web_call *call, const char *name,
            struct cpprof__buffer *out)
{
    const char *query = call->request->query ? call->request->query : "";
    bool is_inverted = strcmp(name, "inverted") == 0;
    struct cpprof_http_request request = *call->request;
    struct cpprof__web_call other = *call;
    char *own;

    other.request = &request;
    if ((!is_inverted && strcmp(name, "flamegraph") != 0) ||
        has_value(query, 'p')) {
        cpprof__web_print_view(call, "profile", out);
        return;
    }
    if (asprintf(&own, "%s&z=&p=&max=0&gz=f&callers=f&w=" FIRST_WIDTH "%s",
                 query, is_inverted ? "&inv=t" : "") < 0) {
        out->failed = true;
        return;
    }
    request.query = own;
    cpprof__web_print_view(&other, "first", out);
    free(own);
}

/* Append the data of a page, and its end. Do they tell why there is no profile?
 * A page that another site leads to comes without: how long it takes, which
 * that site can see, tells nothing of the profile. */
static bool
print_rest(const struct cpprof__web_call *call, const char *name,
           struct cpprof__buffer *out)
{
    bool knows = false;

    cpprof__buffer_printf(out, "{");
    if (!(call->request->flags & CPPROF__HTTP_FROM_OTHERS)) {
        cpprof__buffer_printf(out, "\"width\":" FIRST_WIDTH ",\"first\":");
        print_first(call, name, out);
        cpprof__buffer_printf(out, ",\"start\":");
        knows = print_status(call->web, out);
    }
    cpprof__buffer_printf(out, "}%s", cpprof__web_page.rest);
    return knows;
}

/* The whole page as it is: few clients want that. */
static enum cpprof_status
send_unpacked(struct cpprof__web_call *call, const struct cpprof__buffer *rest)
{
    const struct cpprof__web_page *page = &cpprof__web_page;
    struct cpprof__buffer packed = {0}, plain = {0};
    enum cpprof_status status;

    cpprof__buffer_append(&packed, page->head, page->n_head);
    status = cpprof__gzip_rest(&packed, page->crc, page->n_plain, rest->data,
                               rest->n, 1, NULL);
    if (status == CPPROF_OK)
        status = cpprof__gunzip(&plain, packed.data, packed.n,
                                page->n_plain + rest->n, NULL);
    status = status == CPPROF_OK && !rest->failed
                 ? cpprof__web_send(call, 200, HTML, NULL, plain.data, plain.n)
                 : cpprof__web_say(call, 500, "out of memory");
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&plain);
    return status;
}

/* The browser reads style and script while the data are made. */
static enum cpprof_status
send_page(struct cpprof__web_call *call, const char *name)
{
    const struct cpprof_http_header gzip = {"Content-Encoding", "gzip"};
    const struct cpprof_http_response *to = call->response;
    const struct cpprof__web_page *page = &cpprof__web_page;
    struct cpprof__buffer rest = {0}, packed = {0};
    enum cpprof_status status = CPPROF_OK;
    bool is_packed = call->request->flags & CPPROF__HTTP_TAKES_GZIP, knows;
    int failed = 0;

    if (is_packed && !begin_body(call, 200, HTML, &gzip, -1, &failed))
        return failed ? CPPROF_SYSTEM : CPPROF_OK; /* HEAD */
    if (is_packed)
        failed = to->write(to->ctx, page->head, page->n_head);
    knows = !failed && print_rest(call, name, &rest);
    if (!is_packed)
        status = send_unpacked(call, &rest);
    else if (!failed)
        failed = cpprof__gzip_rest(&packed, page->crc, page->n_plain, rest.data,
                                   rest.n, 1, NULL) != CPPROF_OK ||
                 rest.failed || to->write(to->ctx, packed.data, packed.n) != 0;
    cpprof__buffer_free(&rest);
    cpprof__buffer_free(&packed);
    note_told(call->web, knows && !failed && status == CPPROF_OK);
    return failed ? CPPROF_SYSTEM : status;
}

static enum cpprof_status
send_download(struct cpprof__web_call *call)
{
    struct cpprof_http_request request = *call->request;
    struct cpprof__web_call whole = *call;

    request.query = NULL;
    whole.request = &request;
    whole.is_whole = true;
    return cpprof__web_view(&whole, "report/proto");
}

/* ---------------------------------------------------------------- routes ----
 */

static enum cpprof_status
send_api(struct cpprof__web_call *call, const char *name)
{
    if (strcmp(name, "status") == 0)
        return send_status(call);
    if (strcmp(name, "configs") == 0)
        return cpprof__web_send_configs(call);
    return cpprof__web_view(call, name);
}

static bool
is_one_of(const char *const *words, const char *word)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

static enum cpprof_status
send_ui(struct cpprof__web_call *call, const char *name)
{
    static const char *const pages[] = {
        "flamegraph", "sandwich", "inverted", "top",    "tree",
        "graph",      "timeline", "source",   "disasm", "peek",
        "traces",     "tags",     NULL};
    static const char *const old[] = {"", "flamegraph2", "flamegraphold", NULL};

    if (strncmp(name, "api/", 4) == 0)
        return send_api(call, name + 4);
    if (strcmp(name, "download") == 0)
        return send_download(call);
    if (is_one_of(old, name))
        return redirect(call, "/ui/", "flamegraph");
    if (is_one_of(pages, name))
        return send_page(call, name);
    return cpprof__web_say(call, 404, "no such page");
}

/* What changes something, which no GET does. Whether a page of ours asks was
 * seen by the server. */
static enum cpprof_status
send_change(struct cpprof__web_call *call, const char *path)
{
    const char *method = call->request->method;
    bool saves = strcmp(path, "/ui/saveconfig") == 0;

    if (strcmp(method, "POST") != 0 && (saves || strcmp(method, "DELETE") != 0))
        return cpprof__web_say(call, 405,
                               saves ? "only POST" : "only POST and DELETE");
    return cpprof__web_edit_config(call, !saves);
}

enum cpprof_status
cpprof__web_answer(struct cpprof__web_call *call)
{
    const char *method = call->request->method;
    const char *path = call->request->path;
    size_t n = strlen(call->web->prefix);

    if (strncmp(path, call->web->prefix, n) != 0)
        return cpprof__web_say(call, 404, "not found");
    call->path = path += n;
    if (strcmp(path, "/ui/saveconfig") == 0 ||
        strcmp(path, "/ui/deleteconfig") == 0)
        return send_change(call, path);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return cpprof__web_say(call, 405, "only GET and HEAD");
    if (strncmp(path, "/ui/", 4) == 0)
        return send_ui(call, path + 4);
    if (strcmp(path, "/ui") == 0 || strcmp(path, "/") == 0 || !*path)
        return redirect(call, "/ui/", "flamegraph");
    /* As old bookmarks of pprof have it: /top, without a second slash that
     * would lead to another host. */
    if (*path == '/' &&
        strspn(path + 1, "abcdefghijklmnopqrstuvwxyz2") == strlen(path + 1))
        return redirect(call, "/ui", path);
    return cpprof__web_say(call, 404, "not found");
}
