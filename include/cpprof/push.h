/* SPDX-License-Identifier: MIT */
/*
 * Continuous profiling: the profiles of every ten seconds, sent to a Pyroscope
 * server or an OpenTelemetry collector, or kept as files of which the newest
 * stay.
 *
 *     cpprof_push_start("http://pyroscope:4040", NULL, NULL);
 *
 * docs/push.md tells what is sent, and how; CPPROF=push=URL is the same without
 * a line of code.
 */
#ifndef CPPROF_PUSH_H
#define CPPROF_PUSH_H

#include <cpprof/cpu.h>
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

#ifdef __cplusplus
extern "C" {
#endif

/* struct cpprof_push_options kinds */
#define CPPROF_PUSH_CPU       1u
#define CPPROF_PUSH_HEAP      2u
#define CPPROF_PUSH_BLOCK     4u /* nothing in it without cpprof_block_set_rate */
#define CPPROF_PUSH_MUTEX     8u /* the same with cpprof_mutex_set_fraction */
#define CPPROF_PUSH_WALL      16u
#define CPPROF_PUSH_GOROUTINE 32u
#define CPPROF_PUSH_CUSTOM    64u /* of the program's own: profiles.h */

/* A URL that begins with "otlp+", "pprof+" or "parca+" says it, too. */
enum cpprof_push_protocol {
    CPPROF_PUSH_V1 = 0, /* /push.v1.PusherService/Push: Pyroscope from 1.0 on */
    CPPROF_PUSH_INGEST, /* /ingest: older ones too, and what imitates them */
    CPPROF_PUSH_OTLP,  /* /v1development/profiles: OTLP 1.10, what the collector
                        * of OpenTelemetry takes */
    CPPROF_PUSH_PPROF, /* /v1/pprof: the collector's receiver of pprof */
    CPPROF_PUSH_PARCA, /* /api/profiles/writeraw: Parca */
};

struct cpprof_push_options {
    size_t size;        /* sizeof (struct cpprof_push_options) */
    const char *name;   /* of the application, letters, digits, "-./_:@"; NULL:
                         * that of the executable */
    const char *labels; /* of all profiles, "region=eu,host=a"; NULL: none. In
                         * name and labels %p is the pid and %e the name of the
                         * executable */
    uint32_t kinds;     /* CPPROF_PUSH_*; 0: all but wall */
    uint32_t interval_seconds; /* 1 to 3600; 0: 10 */
    enum cpprof_push_protocol protocol;

    /* What the server is told of who sends: user and password go into basic
     * authentication, and a token alone is a bearer's. NULL: what the URL says,
     * if anything. */
    const char *user;
    const char *password;
    const char *token;
    const char *token_file; /* its first line is the token, or with a user the
                             * password; read anew for every request */
    const char *tenant;     /* X-Scope-OrgID; NULL: none */

    uint32_t queue_bytes; /* kept for a server that is away, then the oldest
                           * are dropped; 0: 16 MiB */
    uint32_t keep;        /* files of each kind that stay; 0: 360 */

    const struct cpprof_cpu_options *cpu; /* NULL: defaults */
    const struct cpprof_wall_options *wall;
    const struct cpprof_profile_options *profiles; /* of the others; debug 0 */

    /* Told what goes wrong, a line at most once in a minute, from a thread of
     * cpprof's. NULL: nobody is. */
    void (*report)(void *ctx, const char *line);
    void *ctx;

    uint32_t every_seconds; /* an interval begins every so many seconds, and
                             * between two of them CPU and wall time rest; the
                             * other kinds are of all the time. Up to 3600, and
                             * no less than an interval; 0: one interval
                             * follows the other */

    uint32_t budget_ppm; /* of the CPU time of the process, or of one
                          * processor's time if that is more: what sampling and
                          * pushing may take, in millionths. Rates and intervals
                          * follow it (docs/push.md); 0: no limit */
};

/*
 * Begin to push, in the background, until cpprof_push_stop() or the end of the
 * process, which sends what there is and takes no longer than two seconds.
 *
 * url      "http://host:4040", "https://host/pyroscope": a server;
 *          "otlp+http://collector:4318": one that takes OTLP;
 *          "parca+http://parca:7070". An absolute path or "file:///dir" is a
 *          folder, or a pattern with %k (the kind), %t (when its time began,
 *          in seconds since 1970), %p and %e.
 * options  NULL for defaults; only this call reads them.
 *
 * Shape:   one profile of each kind and interval. CPU, wall, allocations,
 *          block and mutex: what was added in it; heap in use, goroutine and
 *          profiles of the program's own that have values: as it stands at its
 *          end.
 * Errors:  CPPROF_INVALID, CPPROF_BUSY (pushes already), CPPROF_UNSUPPORTED
 *          (libcpprof-push.so or libcurl is not there), CPPROF_NOMEM,
 *          CPPROF_SYSTEM. A server that is away is none.
 * Safety:  MT. Not AS. A child made by fork() does not push.
 * Source:  grafana/pyroscope api/push/v1, pkg/ingester/pyroscope.
 */
CPPROF_API enum cpprof_status
cpprof_push_start(const char *url, const struct cpprof_push_options *options,
                  struct cpprof_error *error);

/* Send what there is, for two seconds at most, and end. Harmless when nothing
 * is pushed. Safety: MT. Not AS. */
CPPROF_API void
cpprof_push_stop(void);

#ifdef __cplusplus
}
#endif

#endif
