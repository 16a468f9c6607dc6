/* SPDX-License-Identifier: MIT */
/*
 * An answer in progress: its head, once, and then its body. The first failure
 * of a callback is remembered, and no callback is called after it.
 *
 * A HEAD request gets only the head. The code that answers need not know about
 * it.
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
    bool is_packed;        /* Content-Encoding: gzip */
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

    /* The head to send with the first byte of the body, if none was sent
     * before. */
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

/* Answer with an error text that pprof shows to its user. If the answer has
 * begun already, it stays incomplete. */
void
cpprof__answer_error(struct cpprof__answer *a, int status, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/*
 * A profile writer whose output becomes the body. The answer begins with the
 * first byte, or when the writer is closed after success. Until then
 * cpprof__answer_end() can still report a failure.
 */
struct cpprof_writer
cpprof__answer_writer(struct cpprof__answer *a,
                      const struct cpprof__answer_head *head);

/* Finish the answer with the outcome of writing the profile. */
void
cpprof__answer_end(struct cpprof__answer *a, enum cpprof_status status,
                   const struct cpprof_error *error);

#endif
