/* SPDX-License-Identifier: MIT */
/*
 * cpprof_http_handle(): finds who answers a path.
 *
 * Three tables are asked in turn: the paths of Go and of gperftools, then the
 * profiles that the program knows by name, then paths of our own. So a program
 * that gives its profile the name of one of ours is served its own. Paths that
 * are not canonical, and those that nobody knows, are answered as Go's ServeMux
 * does.
 *
 * Source: Go net/http (ServeMux.Handler, Redirect, NotFound), path (Clean).
 */
#include "base/options.h"
#include "base/status.h"
#include "collect/runtime/exempt.h"
#include "http/call.h"
#include "http/plugin.h"
#include "http/text.h"

#include <errno.h>
#include <string.h>

struct route {
    const char *path;
    void (*serve)(struct cpprof__call *call);
};

/* Asked before the program's own profiles. */
static const struct route routes[] = {
    {"/debug/pprof/", cpprof__http_index},
    {"/debug/pprof/cmdline", cpprof__http_cmdline},
    {"/debug/pprof/profile", cpprof__http_cpu},
    {"/debug/pprof/symbol", cpprof__http_symbol},
    {"/debug/pprof/trace", cpprof__http_trace},
    {"/debug/fgprof", cpprof__http_fgprof},
    /* gperftools */
    {"/pprof/cmdline", cpprof__http_cmdline_lines},
    {"/pprof/growth", cpprof__http_growth},
    {"/pprof/heap", cpprof__http_profile},
    {"/pprof/pmuprofile", cpprof__http_pmu},
    {"/pprof/profile", cpprof__http_cpu},
    {"/pprof/symbol", cpprof__http_symbol},
    {"/pprof/wall", cpprof__http_wall},
    {"/pprof/contention", cpprof__http_contention},
};

/* Asked after them: a profile of the program with one of these names takes
 * precedence. */
static const struct route additions[] = {
    {"/debug/pprof/delta_block", cpprof__http_since},
    {"/debug/pprof/delta_heap", cpprof__http_since},
    {"/debug/pprof/delta_mutex", cpprof__http_since},
    {"/debug/pprof/offcpu", cpprof__http_off_cpu},
    {"/debug/pprof/ui", cpprof__http_page},
    {"/debug/pprof/ui/base.css", cpprof__http_page_file},
    {"/debug/pprof/ui/flame.js", cpprof__http_page_file},
    {"/debug/pprof/ui/page.css", cpprof__http_page_file},
    {"/debug/pprof/ui/page.js", cpprof__http_page_file},
    {"/debug/pprof/ui/profile.js", cpprof__http_page_file},
    {"/debug/pprof/ui/single.css", cpprof__http_page_file},
    {"/debug/pprof/ui/single.js", cpprof__http_page_file},
    {"/debug/pprof/ui/text.js", cpprof__http_page_file},
    {"/debug/pprof/wall", cpprof__http_wall},
};

static const char folder[] = "/debug/pprof/";

static const struct route *
find(const struct route *among, size_t n, const char *path)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (strcmp(among[i].path, path) == 0)
            return &among[i];
    return NULL;
}

#define FIND(among, path) find(among, sizeof(among) / sizeof *(among), path)

/* ---- what Go's ServeMux answers itself ---------------------------------- */

static void
not_found(struct cpprof__call *call)
{
    static const char text[] = "404 page not found\n";
    const struct cpprof__answer_head head = {.status = 404,
                                             .content_type = CPPROF__PLAIN,
                                             .n_body = sizeof text - 1};

    cpprof__answer_begin(&call->answer, &head);
    cpprof__answer_write(&call->answer, text, sizeof text - 1);
}

/* A header holds no byte that is not ASCII, and no end of a line. */
static void
make_location(struct cpprof__buffer *location, const char *path,
              const char *query)
{
    cpprof__text_path(location, path);
    if (query && *query)
        cpprof__text_add(location, "?");
    for (; query && *query; query++)
        if ((unsigned char)*query < ' ' || (unsigned char)*query > '~')
            cpprof__buffer_printf(location, "%%%02x", (unsigned char)*query);
        else
            cpprof__buffer_append(location, query, 1);
    cpprof__buffer_append(location, "", 1);
}

/* Answer with a redirection to a path, which is not escaped, with the query
 * that came. Only a GET request gets the page. */
static void
redirect(struct cpprof__call *call, const char *path)
{
    bool is_get = strcmp(call->request.method, "GET") == 0;
    struct cpprof__answer_head head = {.status = 301, .is_sniffed = true};
    struct cpprof__buffer location = {0}, page = {0};

    make_location(&location, path, call->request.query);
    if (!location.failed) {
        cpprof__text_add(&page, "<a href=\"");
        cpprof__text_html(&page, (const char *)location.data);
        cpprof__text_add(&page, "\">Moved Permanently</a>.\n\n");
    }
    if (location.failed || page.failed) {
        cpprof__answer_error(&call->answer, 500, "out of memory");
    } else {
        head.location = (const char *)location.data;
        if (is_get || call->answer.is_head)
            head.content_type = CPPROF__HTML;
        if (is_get)
            head.n_body = (int64_t)page.n;
        else if (call->answer.is_head)
            head.n_body = -1;
        cpprof__answer_begin(&call->answer, &head);
        if (is_get)
            cpprof__answer_write(&call->answer, page.data, page.n);
    }
    cpprof__buffer_free(&location);
    cpprof__buffer_free(&page);
}

/* Take the last element off. */
static void
drop_element(struct cpprof__buffer *b)
{
    while (b->n && b->data[b->n - 1] != '/')
        b->n--;
    if (b->n)
        b->n--;
}

void
cpprof__mux_clean(struct cpprof__buffer *b, const char *path)
{
    const char *at = path;
    size_t n;

    for (; *at; at += n) {
        at += strspn(at, "/");
        n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.') {
            drop_element(b);
        } else if (n && (n > 1 || at[0] != '.')) {
            cpprof__text_add(b, "/");
            cpprof__buffer_append(b, at, n);
        }
    }
    if (!b->n || at[-1] == '/')
        cpprof__text_add(b, "/");
    cpprof__buffer_append(b, "", 1);
}

/* ---- who answers ------------------------------------------------------ */

static void
serve(struct cpprof__call *call)
{
    const char *path = call->request.path, *slash = strrchr(path, '/');
    const struct route *route = FIND(routes, path);
    bool is_inside = !strncmp(path, folder, sizeof folder - 1);

    call->name = is_inside ? path + sizeof folder - 1 : slash ? slash + 1 : "";
    if (!route && is_inside && !cpprof_profile_lookup(call->name))
        route = FIND(additions, path);
    if (route)
        route->serve(call);
    else if (is_inside)
        cpprof__http_profile(call);
    else
        not_found(call);
}

/* Answer with a redirection if the path is not in its canonical form; false if
 * it is. */
static bool
send_elsewhere(struct cpprof__call *call)
{
    const char *path = call->request.path;
    struct cpprof__buffer clean = {0};
    CPPROF__EXEMPT;

    cpprof__mux_clean(&clean, path);
    if (clean.failed)
        cpprof__answer_error(&call->answer, 500, "out of memory");
    else if (!strcmp((char *)clean.data, "/debug/pprof"))
        redirect(call, folder);
    else if (strcmp((char *)clean.data, path) != 0)
        redirect(call, (char *)clean.data);
    cpprof__buffer_free(&clean);
    return call->answer.has_begun;
}

/* ---- structs ---------------------------------------------------------- */

static enum cpprof_status
take(struct cpprof__call *call, const struct cpprof_http_request *request,
     const struct cpprof_http_response *response, struct cpprof_error *error)
{
    enum cpprof_status status;

    memset(call, 0, sizeof *call);
    status = cpprof__options(&call->request, sizeof call->request, request,
                             "cpprof_http_request", error);
    if (status == CPPROF_OK)
        status = cpprof__options(&call->answer.response,
                                 sizeof call->answer.response, response,
                                 "cpprof_http_response", error);
    if (status == CPPROF_OK)
        status =
            cpprof__options_flags(call->request.flags,
                                  CPPROF__HTTP_FLAGS | CPPROF__HTTP_TAKES_GZIP |
                                      CPPROF__HTTP_FROM_OTHERS,
                                  CPPROF_SYMBOLIZE_FULL, error);
    if (status != CPPROF_OK)
        return status;
    if (!call->request.method || !call->request.path)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "the request has no method or no path");
    if (!call->answer.response.begin || !call->answer.response.write)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "the response has no functions");
    call->answer.is_head = strcmp(call->request.method, "HEAD") == 0;
    return CPPROF_OK;
}

static enum cpprof_status
outcome(const struct cpprof__answer *a, struct cpprof_error *error)
{
    if (a->sys)
        return cpprof__fail(error, CPPROF_SYSTEM, a->sys,
                            "the answer was not sent: %s", strerror(a->sys));
    if (a->is_partial)
        return cpprof__fail(error, CPPROF_SYSTEM, EIO,
                            "the answer ended in the middle");
    return CPPROF_OK;
}

enum cpprof_status
cpprof_http_handle(const struct cpprof_http_request *request,
                   const struct cpprof_http_response *response,
                   struct cpprof_error *error)
{
    struct cpprof__call call;
    enum cpprof_status status = take(&call, request, response, error);

    if (status != CPPROF_OK)
        return status;
    if (!strcmp(call.request.method, "CONNECT") || !send_elsewhere(&call))
        serve(&call);
    return outcome(&call.answer, error);
}
