/* SPDX-License-Identifier: MIT */
/*
 * What is at each path. Pages and their files come from memory and contain
 * nothing of the profile; what they show they ask for below /ui/api/. Paths
 * that pprof's page has lead to the same view here.
 *
 * Every answer forbids what the page does not need: scripts and styles but its
 * own files, frames around it, other sites that read it.
 */
#include "cli/web/web.h"

#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "page/web/page.h"
#include "profile/gunzip.h"
#include "report/flame/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLICY                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; "                \
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "        \
    "form-action 'none'; frame-ancestors 'none'; "                             \
    "require-trusted-types-for 'script'; trusted-types 'none'"

#define HTML      "text/html; charset=utf-8"
#define PLAIN     "text/plain; charset=utf-8"
#define N_HEADERS 8

/* Bytes of the largest file of the page, and more. */
#define MOST_FILE (1 << 20)

enum cpprof_status
cpprof__web_send(struct cpprof__web_call *call, int status, const char *type,
                 const struct cpprof_http_header *extra, const void *body,
                 size_t n)
{
    const struct cpprof_http_response *to = call->response;
    struct cpprof_http_header headers[N_HEADERS] = {
        {"Content-Type", type},
        {"Content-Security-Policy", POLICY},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    int failed;

    if (extra)
        headers[N_HEADERS - 1] = *extra;
    failed =
        to->begin(to->ctx, status, headers, N_HEADERS - !extra, (int64_t)n);
    if (!failed && n && strcmp(call->request->method, "HEAD") != 0)
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

/* How far it is, and what the command was started with. */
static enum cpprof_status
send_status(struct cpprof__web_call *call)
{
    struct cpprof__web *web = call->web;
    struct cpprof__buffer out = {0};
    enum cpprof_status status;
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
    cpprof__buffer_printf(&out,
                          "{\"v\":1,\"ready\":%s,\"seconds\":%ld,"
                          "\"progress\":",
                          is_ready ? "true" : "false", is_ready ? 0 : seconds);
    cpprof__json_text(&out, what, is_ready ? 0 : strlen(what));
    cpprof__buffer_printf(&out,
                          ",\"live\":%s,\"over\":%s,\"stopped\":%s,"
                          "\"turn\":%u",
                          cpprof__live ? "true" : "false",
                          is_over ? "true" : "false",
                          is_stopped ? "true" : "false", turn);
    cpprof__buffer_printf(&out, ",\"failed\":");
    cpprof__json_text(&out, why, strlen(why));
    cpprof__buffer_printf(&out, ",");
    cpprof__web_print_start(web, &out);
    cpprof__buffer_printf(&out, "}\n");
    status = out.failed ? cpprof__web_say(call, 500, "out of memory")
                        : cpprof__web_send(call, 200, "application/json", NULL,
                                           out.data, out.n);
    cpprof__buffer_free(&out);
    pthread_mutex_lock(&web->lock);
    web->page_knows |= *why != 0;
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
    return status;
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
send_file(struct cpprof__web_call *call, const char *name)
{
    const struct cpprof_http_header packed = {"Content-Encoding", "gzip"};
    const struct cpprof__page_file *file = cpprof__web_files;
    struct cpprof__buffer plain = {0};
    enum cpprof_status status;

    while (file->name && strcmp(file->name, name) != 0)
        file++;
    if (!file->name)
        return cpprof__web_say(call, 404, "no such file");
    if (call->request->flags & CPPROF__HTTP_TAKES_GZIP)
        return cpprof__web_send(call, 200, file->type, &packed, file->data,
                                file->n);
    status = cpprof__gunzip(&plain, file->data, file->n, MOST_FILE, NULL);
    status = status == CPPROF_OK ? cpprof__web_send(call, 200, file->type, NULL,
                                                    plain.data, plain.n)
                                 : cpprof__web_say(call, 500, "out of memory");
    cpprof__buffer_free(&plain);
    return status;
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
    if (strncmp(name, "assets/", 7) == 0)
        return send_file(call, name + 7);
    if (strcmp(name, "download") == 0)
        return send_download(call);
    if (is_one_of(old, name))
        return redirect(call, "/ui/", "flamegraph");
    if (is_one_of(pages, name))
        return cpprof__web_send(call, 200, HTML, NULL, cpprof__web_page_html,
                                strlen(cpprof__web_page_html));
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
