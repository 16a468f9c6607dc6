/* SPDX-License-Identifier: MIT */
/*
 * Answers of an HTTP request, given through the callbacks of whoever serves
 * it: a head, then the body.
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

/* The header stays one line whatever the name contains. NULL: no memory. */
static const char *
disposition(struct cpprof__buffer *b, const char *file_name)
{
    cpprof__buffer_printf(b, "attachment; filename=\"");
    for (; *file_name; file_name++) {
        bool is_control = (unsigned char)*file_name < ' ' || *file_name == 0x7f;

        cpprof__buffer_append(b, is_control ? " " : file_name, 1);
    }
    cpprof__buffer_append(b, "\"", 2);
    return b->failed ? NULL : (const char *)b->data;
}

/* If memory for the file name runs out, the header is left out. */
void
cpprof__answer_begin(struct cpprof__answer *a,
                     const struct cpprof__answer_head *head)
{
    struct cpprof__buffer name = {0};
    struct cpprof_http_header headers[] = {
        {"Content-Disposition", NULL},
        {"Content-Encoding", head->is_packed ? "gzip" : NULL},
        {"Content-Security-Policy", head->policy},
        {"Content-Type", head->content_type},
        {"Location", head->location},
        {"X-Content-Type-Options", head->is_sniffed ? NULL : "nosniff"},
        {"X-Go-Pprof", head->go_pprof ? "1" : NULL},
    };
    size_t i, n = 0;
    CPPROF__EXEMPT;

    if (a->has_begun)
        return;
    a->has_begun = true;
    if (head->file_name)
        headers[0].value = disposition(&name, head->file_name);
    for (i = 0; i < sizeof headers / sizeof *headers; i++)
        if (headers[i].value)
            headers[n++] = headers[i];
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
