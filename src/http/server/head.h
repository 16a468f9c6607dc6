/* SPDX-License-Identifier: MIT */
/*
 * The head of an HTTP/1 request: the request line and the headers, from bytes
 * that anybody may have sent. Nothing is copied; what is not plainly right is
 * an error, so that two readers of one request cannot differ.
 *
 * Source: RFC 9112 (2.2, 3, 5, 6), RFC 9110 (5.5, 10.1.1).
 */
#ifndef HTTP_SERVER_HEAD_H
#define HTTP_SERVER_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__http_head {
    const char *method;
    const char *path;          /* decoded */
    const char *query;         /* as it came; NULL: no '?' */
    const char *host;          /* or NULL, as all below */
    const char *authorization; /* several are an error */
    const char *content_type;
    const char *content_length;
    const char *transfer_encoding;
    uint64_t n_body;
    bool has_version_0; /* HTTP/1.0 */
    bool is_chunked;    /* n_body is not known then */
    bool keeps_alive;
    bool wants_continue;
};

/*
 * Where the head ends: its length with the empty line, 0 when that is not yet
 * there. Empty lines in front of it belong to it. *seen, 0 at first, keeps what
 * was looked at.
 */
size_t
cpprof__http_head_length(const char *data, size_t n, size_t *seen);

/*
 * Read a whole head; its bytes become the texts in *head, which live as long.
 *
 * Errors: the status to answer with, and *why, a static text or NULL. 0: none.
 */
int
cpprof__http_head_parse(char *data, size_t n, struct cpprof__http_head *head,
                        const char **why);

#endif
