/* SPDX-License-Identifier: MIT */
/*
 * Answers of an HTTP request, given through the callbacks of whoever serves
 * it: a head with at most HEADERS_MAX headers, then the body.
 *
 * Invariants: the head is given once and before any byte of the body; after a
 * callback failed none is called any more; no header contains a line break,
 * whatever the name of a profile contains.
 */
#include "http/answer.h"

#include "base/buffer.h"
#include "collect/runtime/exempt.h"

#include <stdio.h>
#include <string.h>

#define HEADERS_MAX 6

/* Append text as part of a header, which stays one line whatever a name
 * contains. */
static void
add_text(struct cpprof__buffer *b, const char *text)
{
    for (; *text; text++) {
        bool is_control = (unsigned char)*text < ' ' || *text == 0x7f;

        cpprof__buffer_append(b, is_control ? " " : text, 1);
    }
}

static const char *
disposition(struct cpprof__buffer *b, const char *file_name)
{
    static const char before[] = "attachment; filename=\"";

    cpprof__buffer_append(b, before, sizeof before - 1);
    add_text(b, file_name);
    cpprof__buffer_append(b, "\"", 2);
    return b->failed ? NULL : (const char *)b->data;
}

static size_t
gather(struct cpprof_http_header *headers,
       const struct cpprof__answer_head *head, const char *content_disposition)
{
    size_t n = 0;

    if (content_disposition)
        headers[n++] = (struct cpprof_http_header){"Content-Disposition",
                                                   content_disposition};
    if (head->policy)
        headers[n++] = (struct cpprof_http_header){"Content-Security-Policy",
                                                   head->policy};
    if (head->content_type)
        headers[n++] =
            (struct cpprof_http_header){"Content-Type", head->content_type};
    if (head->location)
        headers[n++] = (struct cpprof_http_header){"Location", head->location};
    if (!head->is_sniffed)
        headers[n++] =
            (struct cpprof_http_header){"X-Content-Type-Options", "nosniff"};
    if (head->go_pprof)
        headers[n++] = (struct cpprof_http_header){"X-Go-Pprof", "1"};
    return n;
}

/* If memory for the file name runs out, the header is left out. */
void
cpprof__answer_begin(struct cpprof__answer *a,
                     const struct cpprof__answer_head *head)
{
    struct cpprof_http_header headers[HEADERS_MAX];
    struct cpprof__buffer name = {0};
    size_t n;
    CPPROF__EXEMPT;

    if (a->has_begun)
        return;
    a->has_begun = true;
    n = gather(headers, head,
               head->file_name ? disposition(&name, head->file_name) : NULL);
    a->sys = a->response.begin(a->response.ctx, head->status, headers, n,
                               head->n_body);
    cpprof__buffer_free(&name);
}

int
cpprof__answer_write(struct cpprof__answer *a, const void *data, size_t n)
{
    if (!a->sys && n && !a->is_head)
        a->sys = a->response.write(a->response.ctx, data, n);
    return a->sys;
}

void
cpprof__answer_text(struct cpprof__answer *a, const char *content_type,
                    const void *data, size_t n)
{
    cpprof__answer_begin(
        a, &(struct cpprof__answer_head){.status = 200,
                                         .content_type = content_type,
                                         .n_body = (int64_t)n});
    cpprof__answer_write(a, data, n);
}

void
cpprof__answer_error(struct cpprof__answer *a, int status, const char *format,
                     ...)
{
    char text[320];
    va_list args;
    size_t n;

    if (a->has_begun) {
        a->is_partial = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    n = strlen(text);
    text[n++] = '\n';
    cpprof__answer_begin(
        a, &(struct cpprof__answer_head){.status = status,
                                         .content_type = CPPROF__PLAIN,
                                         .go_pprof = true,
                                         .n_body = (int64_t)n});
    cpprof__answer_write(a, text, n);
}

/* ---- profiles --------------------------------------------------------- */

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct cpprof__answer *a = ctx;

    cpprof__answer_begin(a, &a->expected);
    return cpprof__answer_write(a, data, n);
}

static int
close_body(void *ctx, int failed)
{
    struct cpprof__answer *a = ctx;

    if (!failed)
        cpprof__answer_begin(a, &a->expected);
    return a->sys;
}

struct cpprof_writer
cpprof__answer_writer(struct cpprof__answer *a,
                      const struct cpprof__answer_head *head)
{
    a->expected = *head;
    return (struct cpprof_writer){sizeof(struct cpprof_writer), write_body,
                                  close_body, a};
}

void
cpprof__answer_end(struct cpprof__answer *a, enum cpprof_status status,
                   const struct cpprof_error *error)
{
    if (status == CPPROF_OK)
        return;
    cpprof__answer_error(a, 500, "%s", error->text);
}
