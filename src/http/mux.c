/* SPDX-License-Identifier: MIT */
/*
 * The answers that Go's ServeMux gives itself, for paths that are not
 * canonical.
 *
 * Source: Go net/http (ServeMux.Handler, Redirect, NotFound), path (Clean).
 */
#include "http/mux.h"
#include "collect/runtime/exempt.h"
#include "http/call.h"
#include "http/text.h"

#include <string.h>

void
cpprof__http_not_found(struct cpprof__call *call)
{
    static const char text[] = "404 page not found\n";
    const struct cpprof__answer_head head = {.status = 404,
                                             .content_type = CPPROF__PLAIN,
                                             .n_body = sizeof text - 1};

    cpprof__answer_begin(&call->answer, &head);
    cpprof__answer_write(&call->answer, text, sizeof text - 1);
}

/* ---- redirection ------------------------------------------------------ */

/* A header holds no byte that is not ASCII, and no end of a line. */
static void
add_query(struct cpprof__buffer *b, const char *query)
{
    for (; *query; query++)
        if ((unsigned char)*query < ' ' || (unsigned char)*query > '~')
            cpprof__buffer_printf(b, "%%%02x", (unsigned char)*query);
        else
            cpprof__buffer_append(b, query, 1);
}

static void
make_location(struct cpprof__buffer *location, const char *path,
              const char *query)
{
    cpprof__text_path(location, path);
    if (query && *query) {
        cpprof__text_add(location, "?");
        add_query(location, query);
    }
    cpprof__buffer_append(location, "", 1);
}

static void
make_page(struct cpprof__buffer *page, const struct cpprof__buffer *location)
{
    if (location->failed)
        return;
    cpprof__text_add(page, "<a href=\"");
    cpprof__text_html(page, (const char *)location->data);
    cpprof__text_add(page, "\">Moved Permanently</a>.\n\n");
}

/* Answer with a redirection. Only a GET request gets the page. */
static void
send(struct cpprof__call *call, const struct cpprof__buffer *location,
     const struct cpprof__buffer *page)
{
    bool is_get = strcmp(call->request.method, "GET") == 0;
    struct cpprof__answer_head head = {
        .status = 301,
        .location = (const char *)location->data,
        .is_sniffed = true,
    };

    if (is_get || call->answer.is_head)
        head.content_type = CPPROF__HTML;
    if (is_get)
        head.n_body = (int64_t)page->n;
    else if (call->answer.is_head)
        head.n_body = -1;
    cpprof__answer_begin(&call->answer, &head);
    if (is_get)
        cpprof__answer_write(&call->answer, page->data, page->n);
}

void
cpprof__http_redirect(struct cpprof__call *call, const char *path)
{
    struct cpprof__buffer location = {0}, page = {0};
    CPPROF__EXEMPT;

    make_location(&location, path, call->request.query);
    make_page(&page, &location);
    if (location.failed || page.failed)
        cpprof__answer_error(&call->answer, 500, "out of memory");
    else
        send(call, &location, &page);
    cpprof__buffer_free(&location);
    cpprof__buffer_free(&page);
}

/* ---- clean paths ------------------------------------------------------ */

/* What b holds without its last element. */
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
