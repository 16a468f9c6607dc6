/* SPDX-License-Identifier: MIT */
/*
 * /debug/pprof/ for C: the profiles of this process over HTTP, as Go's
 * net/http/pprof serves them.
 *
 *     cpprof_http_listen("127.0.0.1:6060", NULL, NULL);
 *
 * or, in a server that the program has already, cpprof_http_handle() for every
 * path that begins with /debug/pprof/, /debug/fgprof or /pprof/.
 */
#ifndef CPPROF_HTTP_H
#define CPPROF_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* struct cpprof_http_request flags, and struct cpprof_http_options: of each
 * request */
#define CPPROF_HTTP_ONE_CPU_CAPTURE 1u /* a second one is answered 500: Go */
#define CPPROF_HTTP_NO_NAMES        4u /* addresses only: pprof asks for names */

/* A request, as it came. */
struct cpprof_http_request {
    size_t size;        /* sizeof (struct cpprof_http_request) */
    const char *method; /* "GET" */
    const char *path;   /* decoded, "/debug/pprof/heap" */
    const char *query;  /* what followed the '?', not decoded; NULL: nothing */
    const char *content_type; /* of the body, or NULL */
    const void *body;
    size_t n_body;
    uint32_t flags;       /* CPPROF_HTTP_ONE_CPU_CAPTURE, _NO_NAMES */
    uint32_t max_seconds; /* longer captures are refused; 0: none are */

    /*
     * Wait until so many nanoseconds have passed, or the answer is wanted now:
     * false; or until the client has left: true, and what it asked for is
     * dropped. NULL: cpprof sleeps, and a client that left is noticed at the
     * end.
     */
    bool (*wait)(void *ctx, uint64_t ns);
    void *ctx;

    /* Captures with a duration at once, in the whole process, of which this
     * may be the last: others are answered 503. 0: 128. */
    uint32_t max_captures;
};

struct cpprof_http_header {
    const char *name;
    const char *value;
};

/* Where the answer goes: both calls return 0 or an errno, after which no other
 * call comes. They come one at a time, not always from the thread that called
 * cpprof_http_handle(), and none after it has returned. */
struct cpprof_http_response {
    size_t size; /* sizeof (struct cpprof_http_response) */

    /* Comes once and first, headers to be sent at once: a capture's body takes
     * its time. n_body is the length of the body, or -1: not known; to HEAD,
     * what it would be, and write is not called. */
    int (*begin)(void *ctx, int status,
                 const struct cpprof_http_header *headers, size_t n_headers,
                 int64_t n_body);
    int (*write)(void *ctx, const void *data, size_t n_bytes);
    void *ctx;
};

/*
 * Answer a request; returns when it is answered, a capture when its time is
 * over or the client left.
 *
 * Shape:   docs/http.md lists paths and parameters. Whatever is wrong with the
 *          request is an answer with a status of 400 and more.
 * Errors:  CPPROF_SYSTEM (begin or write failed, or a profile ended in the
 *          middle: the connection is to be cut, so that the answer is not taken
 *          for a whole one), CPPROF_INVALID (a struct without its functions).
 * Owner:   everything stays the caller's.
 * Safety:  MT. Not AS. Threads that call it appear in profiles as any other.
 * Source:  Go net/http/pprof.
 */
CPPROF_API enum cpprof_status
cpprof_http_handle(const struct cpprof_http_request *request,
                   const struct cpprof_http_response *response,
                   struct cpprof_error *error);

/* struct cpprof_http_options flags */
/* Any address without a token; and with a loopback one without, any name in
 * Host: else it is an address or localhost, or the answer 403, so that no page
 * in a browser reads profiles by a name of its own that leads here. */
#define CPPROF_HTTP_INSECURE 2u

struct cpprof_http_options {
    size_t size;       /* sizeof (struct cpprof_http_options) */
    uint32_t flags;    /* CPPROF_HTTP_*; others are refused */
    const char *token; /* asked for in "Authorization: Bearer"; NULL: none */
    uint32_t max_connections; /* 0: 256, or a quarter of RLIMIT_NOFILE where
                               * that is less. One more takes the place of the
                               * one that is the longest without a request;
                               * when all are served it waits in the kernel */
    uint32_t max_captures;    /* at once; 0: 128; more than 176 are 176 */
    uint32_t max_body;        /* bytes; 0: 1 MiB */
    uint32_t header_seconds;  /* until a request must be there; 0: 10 */
    uint32_t max_seconds;     /* of a capture; 0: 3600 */
};

/*
 * Serve in the background, until the process ends or cpprof_http_close(). One
 * server per process; its threads take no signals and are in no profile.
 *
 * address  "127.0.0.1:6060", "[::1]:6060", "localhost:6060", ":6060" (which is
 *          every address), "unix:/path" (made with mode 0600; a socket there
 *          that nobody listens on is replaced). Port 0: any that is free.
 *
 * Errors:  CPPROF_INVALID (not an address; not loopback, and neither token nor
 *          CPPROF_HTTP_INSECURE), CPPROF_BUSY (listens already), CPPROF_SYSTEM
 *          (of bind and listen), CPPROF_UNSUPPORTED (libcpprof-http.so is not
 *          there), CPPROF_NOMEM.
 * Safety:  MT. Not AS. A child made by fork() does not serve, and does not hold
 *          the socket.
 */
CPPROF_API enum cpprof_status
cpprof_http_listen(const char *address,
                   const struct cpprof_http_options *options,
                   struct cpprof_error *error);

/* Where it listens, as above with the true port: stores at most n bytes with a
 * NUL and returns the length, 0 when it does not. Safety: MT. Not AS. */
CPPROF_API size_t
cpprof_http_address(char *address, size_t n);

/* Stop to serve: running captures end now and are answered. Safety: MT. Not
 * AS. */
CPPROF_API void
cpprof_http_close(void);

#ifdef __cplusplus
}
#endif

#endif
