/* SPDX-License-Identifier: MIT */
/*
 * The answer to a request while it is being given: its head, once, then its
 * body. The first failure of a callback is remembered, and after it none is
 * called any more.
 *
 * What a HEAD request is told is the head alone; whoever answers need not know.
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include <cpprof/http.h>
#include <cpprof/writer.h>

#include <stdarg.h>

/* ORDER: as Go sends them, by name. Text that is NULL is no header. */
struct cpprof__answer_head {
    int status;
    const char *file_name; /* Content-Disposition: attachment */
    const char *policy;    /* Content-Security-Policy */
    const char *content_type;
    const char *location;
    bool is_sniffed; /* without X-Content-Type-Options: nosniff */
    bool go_pprof;   /* X-Go-Pprof: pprof shows the body to its user */
    int64_t n_body;  /* or -1 */
};

#define CPPROF__PLAIN "text/plain; charset=utf-8"
#define CPPROF__HTML  "text/html; charset=utf-8"
#define CPPROF__BYTES "application/octet-stream"

struct cpprof__answer {
    struct cpprof_http_response response;
    bool is_head;    /* the method */
    bool has_begun;  /* begin was called */
    bool is_partial; /* what was written is not the whole body */
    int sys;         /* errno of a callback */

    /* What the first byte of a body begins, if nothing has begun by then. */
    struct cpprof__answer_head expected;
};

void
cpprof__answer_begin(struct cpprof__answer *a,
                     const struct cpprof__answer_head *head);

/* 0 or the errno of the first failure. */
int
cpprof__answer_write(struct cpprof__answer *a, const void *data, size_t n);

/* A whole answer of status 200. */
void
cpprof__answer_text(struct cpprof__answer *a, const char *content_type,
                    const void *data, size_t n);

/* A whole answer that says what is wrong, for pprof's user to read; when the
 * answer has begun already, it stays a part. */
void
cpprof__answer_error(struct cpprof__answer *a, int status, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/*
 * The body as a writer of a profile. The answer begins with its first byte, or
 * when the writer is closed and all went well: until then a failure can still
 * be said (cpprof__answer_end).
 */
struct cpprof_writer
cpprof__answer_writer(struct cpprof__answer *a,
                      const struct cpprof__answer_head *head);

/* What became of the profile that was written. */
void
cpprof__answer_end(struct cpprof__answer *a, enum cpprof_status status,
                   const struct cpprof_error *error);

#endif
