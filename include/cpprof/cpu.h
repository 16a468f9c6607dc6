/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of every thread of this process.
 *
 *     struct cpprof_writer out;
 *
 *     cpprof_writer_to_path("cpu.pb.gz", &out, NULL);
 *     cpprof_cpu_start(&out, NULL, NULL);
 *     work();
 *     cpprof_cpu_stop(NULL);
 */
#ifndef CPPROF_CPU_H
#define CPPROF_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/options.h>
#include <cpprof/status.h>
#include <cpprof/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What makes the samples; see docs/cpu.md for what each can and cannot do. */
enum cpprof_engine {
    CPPROF_ENGINE_AUTO = 0, /* the timer, at any rate */
    CPPROF_ENGINE_PERF,     /* perf_event_open, CPU clock, one per thread */
    CPPROF_ENGINE_TIMER,    /* timer_create on each thread's CPU clock */
};

struct cpprof_cpu_options {
    size_t size;        /* sizeof (struct cpprof_cpu_options) */
    uint32_t rate_hz;   /* samples per CPU second, 1 to 10000; 0: 100 */
    uint32_t max_depth; /* frames kept per stack, 1 to 1024; 0: 128 */
    enum cpprof_engine engine;
    enum cpprof_symbolize symbolize;
    uint32_t flags; /* CPPROF_FLAG_NO_LABELS, _LEGACY, _NO_DECOYS */
};

/*
 * Start to sample the CPU time of every thread of this process; the profile is
 * written when cpprof_cpu_stop() is called.
 *
 * writer   receives the file; closed by stop, or by this call when it fails.
 * options  NULL for defaults.
 * error    filled on failure; may be NULL.
 *
 * Shape:   one sample per (stack, label set), two values each: samples, cpu.
 * Units:   count, nanoseconds.
 * Errors:  CPPROF_BUSY ("cpu profiling already in use"), CPPROF_INVALID,
 *          CPPROF_NOMEM, CPPROF_SYSTEM, CPPROF_UNSUPPORTED (the engine asked
 *          for is not allowed here).
 * Owner:   the writer is cpprof's until it is closed.
 * Safety:  MT. Not AS. A child made by fork() is not profiled.
 * Source:  Go runtime/pprof.StartCPUProfile.
 */
CPPROF_API enum cpprof_status
cpprof_cpu_start(const struct cpprof_writer *writer,
                 const struct cpprof_cpu_options *options,
                 struct cpprof_error *error);

/* cpprof_cpu_start() to the file at path, in one call: with a writer of
 * cpprof_writer_to_path(), whose errors come too. Safety: MT. Not AS. */
CPPROF_API enum cpprof_status
cpprof_cpu_start_to_path(const char *path,
                         const struct cpprof_cpu_options *options,
                         struct cpprof_error *error);

/*
 * Stop the CPU profile, symbolize, write it and close its writer. Returns when
 * all is written; of several calls at once one writes, and the others return
 * CPPROF_OK when it has. A start meanwhile waits as well. Harmless when no
 * profile runs, and in the writer's own functions, where it does nothing.
 *
 * A profile that runs when the program calls exit() is written then if its
 * writer is one of cpprof_writer_to_path(); of another one line on standard
 * error says that it is not, because what the writer needs may be gone.
 *
 * Errors:  CPPROF_SYSTEM (a write failed), CPPROF_NOMEM.
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof.StopCPUProfile.
 */
CPPROF_API enum cpprof_status
cpprof_cpu_stop(struct cpprof_error *error);

/* Has cpprof_cpu_start(), or CPPROF=cpu, begun a profile that is not stopped?
 * Captures do not count. Safety: AS. */
CPPROF_API bool
cpprof_cpu_is_running(void);

#ifdef __cplusplus
}
#endif

#endif
