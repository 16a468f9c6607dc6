/* SPDX-License-Identifier: MIT */
/*
 * The body of a request in chunks, piece by piece as it comes. Lines of sizes
 * and trailers are bounded: no state is kept of them but how long they are.
 *
 * Source: RFC 9112, 7.1.
 */
#ifndef HTTP_SERVER_CHUNKS_H
#define HTTP_SERVER_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

/* Zero at first. */
struct cpprof__http_chunks {
    int state;
    unsigned n_line;    /* bytes of this line of a size, or of all trailers */
    unsigned n_trailer; /* bytes of this trailer */
    uint64_t left;      /* of this chunk */
};

/* What cpprof__http_chunks_take() says beside a status of 400. */
#define CPPROF__CHUNKS_MORE 0
#define CPPROF__CHUNKS_DATA 1 /* *n_data bytes of the body are at *used */
#define CPPROF__CHUNKS_END  2

/*
 * Look at data: *used bytes of it are done with. With CPPROF__CHUNKS_DATA the
 * body's bytes follow those, and are done with, too, once they were taken.
 */
int
cpprof__http_chunks_take(struct cpprof__http_chunks *chunks, const char *data,
                         size_t n, size_t *used, size_t *n_data);

#endif
