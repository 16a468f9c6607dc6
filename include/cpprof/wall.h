/* SPDX-License-Identifier: MIT */
/*
 * Where the threads of this process spend wall-clock time, whether they run or
 * wait.
 *
 *     struct cpprof_writer out;
 *
 *     cpprof_writer_to_path("wall.pb.gz", &out, NULL);
 *     cpprof_wall_start(&out, NULL, NULL);
 *     work();
 *     cpprof_wall_stop(NULL);
 */
#ifndef CPPROF_WALL_H
#define CPPROF_WALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/options.h>
#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpprof_wall_options {
    size_t size;        /* sizeof (struct cpprof_wall_options) */
    uint32_t rate_hz;   /* per thread, 1 to 1000; 0: 100; with many threads
                         * each is sampled less often and weighed */
    uint32_t max_depth; /* 1 to 1024; 0: 128 */
    enum cpprof_symbolize symbolize;
    uint32_t flags; /* CPPROF_FLAG_OFF_CPU, _NO_LABELS, _FGPROF, _COLLAPSED */
};

/*
 * Sample all threads at a fixed rate until cpprof_wall_stop(). Samples carry
 * the text label "state".
 *
 * writer   receives the file; closed by stop, or by this call when it fails.
 * options  NULL for defaults.
 * error    filled on failure; may be NULL.
 *
 * Shape:   one sample per (stack, labels), two values: samples, wall.
 * Units:   count, nanoseconds.
 * Errors:  CPPROF_BUSY, CPPROF_INVALID, CPPROF_NOMEM, CPPROF_SYSTEM.
 * Owner:   the writer is cpprof's until it is closed.
 * Safety:  MT. Not AS.
 * Source:  github.com/felixge/fgprof.
 */
CPPROF_API enum cpprof_status
cpprof_wall_start(const struct cpprof_writer *writer,
                  const struct cpprof_wall_options *options,
                  struct cpprof_error *error);

/* cpprof_wall_start() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: MT. Not AS. */
CPPROF_API enum cpprof_status
cpprof_wall_start_to_path(const char *path,
                          const struct cpprof_wall_options *options,
                          struct cpprof_error *error);

/*
 * Stop, symbolize, write the profile and close its writer. Returns when all is
 * written, whoever calls it, as cpprof_cpu_stop() does. Harmless when no
 * profile runs.
 *
 * Errors:  CPPROF_SYSTEM (a write failed), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 */
CPPROF_API enum cpprof_status
cpprof_wall_stop(struct cpprof_error *error);

/* Has cpprof_wall_start(), or CPPROF=wall, begun a profile that is not stopped?
 * Captures do not count. Safety: AS. */
CPPROF_API bool
cpprof_wall_is_running(void);

#ifdef __cplusplus
}
#endif

#endif
