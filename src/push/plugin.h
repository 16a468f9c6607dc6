/* SPDX-License-Identifier: MIT */
/*
 * The interface between libcpprof and libcpprof-push.so, which brings libcurl.
 * The plug-in is loaded when a program pushes to a server, is found by the one
 * symbol below, and stays loaded. It calls nothing of libcpprof by name,
 * because a program may contain the static library.
 */
#ifndef PUSH_PLUGIN_H
#define PUSH_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__PUSH_ABI    5
#define CPPROF__PUSH_SYMBOL "cpprof__push_http"

/* So many requests at once, at most. */
#define CPPROF__PUSH_AT_ONCE 8u

/* One request: POST. */
struct cpprof__push_post {
    const char *url;
    const char *const *headers; /* "Name: value", NULL behind the last */
    const char *user;           /* basic authentication; NULL: none */
    const char *password;
    const void *body;
    size_t n_body;
    uint32_t timeout_ms;
    bool wants_answer; /* what is said of a request that was taken, too */
    const uint32_t
        *cancelled; /* not 0: give up; looked at ten times a second */
};

struct cpprof__push_reply {
    int status;             /* of HTTP; 0: none came, text says why */
    uint32_t retry_after_s; /* what the server asked for; 0: nothing */
    uint64_t n_rejected;    /* of OTLP: what it did not take of what it took */
    char text[512]; /* why: the body, or what in it says that; printable,
                     * and one that is too long lacks its middle */
};

/* A gzipped profile.proto, or what is made of it. */
struct cpprof__push_piece {
    const void *data;
    size_t n;
    uint64_t room_ns; /* in which parts of it may begin, so that no two of a
                       * profile begin at the same time; 0: of a whole one */
};

enum {
    CPPROF__PUSH_FOR_OTLP = 1, /* not for Pyroscope, which takes less */
    CPPROF__PUSH_HALVE = 2,    /* it was too large: make two of it */
    CPPROF__PUSH_MEND = 4,     /* names that servers refuse are changed */
};

/* All are called by one thread. */
struct cpprof__push_http {
    uint32_t abi; /* CPPROF__PUSH_ABI */

    /* A connection, NULL: no memory, or libcurl does not start. at_exit runs
     * when the process ends, before what the TLS library does then. */
    void *(*open)(void (*at_exit)(void));
    /* Send n requests at once, and wait for all replies; all are given up by
     * the first one's word. */
    void (*post)(void *connection, const struct cpprof__push_post *posts,
                 unsigned n, struct cpprof__push_reply *replies);
    void (*close)(void *connection);

    /* Hand over a profile in gzipped parts that a server takes, mostly one: as
     * it is. Each sample is in one of them, and one sample is never halved.
     * False: `use` returned it, no memory, or more than 64 MiB. */
    bool (*parts)(const struct cpprof__push_piece *profile, unsigned flags,
                  bool (*use)(void *ctx, const struct cpprof__push_piece *part),
                  void *ctx);

    /* The same for the one request of OTLP that a part is made into, with what
     * resource says (OTEL_RESOURCE_ATTRIBUTES). */
    bool (*otlp)(const struct cpprof__push_piece *part, const char *resource,
                 bool (*use)(void *ctx,
                             const struct cpprof__push_piece *request),
                 void *ctx);
};

#endif
