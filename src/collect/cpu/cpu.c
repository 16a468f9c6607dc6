/* SPDX-License-Identifier: MIT */
/*
 * The public calls of <cpprof/cpprof.h>: checks the options of a CPU profile,
 * fills in defaults, and makes captures of it. What a capture does between its
 * calls is runtime/life.h's.
 */
#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "collect/cpu/cpu_capture.h"
#include "collect/cpu/session.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "collect/threads/engine.h"

#include <string.h>

static struct cpprof__cpu_capture *
new_capture(const struct cpprof_cpu_options *options,
            const struct cpprof_writer *writer)
{
    struct cpprof__cpu_capture *c =
        cpprof__capture_new(&cpprof__cpu_life, sizeof *c, writer);

    if (c)
        c->options = *options;
    return c;
}

/* A caller that was built against an older header has a shorter struct: the
 * missing fields get defaults. A caller that was built against a newer header
 * has a longer struct: the fields that are not known here must be 0. */
static enum cpprof_status
make(const struct cpprof_cpu_options *given, const struct cpprof_writer *writer,
     struct cpprof__cpu_capture **out, struct cpprof_error *error)
{
    struct cpprof_cpu_options options;
    enum cpprof_status status;

    memset(&options, 0, sizeof options);
    status = cpprof__options(&options, sizeof options, given,
                             "cpprof_cpu_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options_sampling(&options.rate_hz, 10000,
                                          &options.max_depth, CPPROF__MAX_DEPTH,
                                          error);
    if (status == CPPROF_OK && (unsigned)options.engine > CPPROF_ENGINE_TIMER)
        status = cpprof__fail(error, CPPROF_INVALID, 0, "unknown engine %d",
                              (int)options.engine);
    if (status == CPPROF_OK)
        status = cpprof__options_flags(options.flags, CPPROF__CPU_FLAGS,
                                       options.symbolize, error);
    if (status != CPPROF_OK)
        return status;
    *out = new_capture(&options, writer);
    return *out ? CPPROF_OK : cpprof__fail_nomem(error);
}

enum cpprof_status
cpprof__cpu_capture_new(const struct cpprof_cpu_options *options,
                        const struct cpprof_writer *given,
                        struct cpprof_capture **out, struct cpprof_error *error)
{
    struct cpprof__cpu_capture *c = NULL;
    struct cpprof_writer writer;
    enum cpprof_status status = cpprof__writer_take(given, &writer, error);

    if (status == CPPROF_OK)
        status = make(options, &writer, &c, error);
    if (status == CPPROF_OK)
        *out = &c->base;
    else
        cpprof__writer_refuse(&writer);
    return status;
}

enum cpprof_status
cpprof__cpu_recorder_new(const struct cpprof_cpu_options *options,
                         const char *directory, bool names_threads,
                         bool (*at_scan)(void), struct cpprof_capture **out,
                         struct cpprof_error *error)
{
    struct cpprof__cpu_capture *c = NULL;
    enum cpprof_status status = make(options, NULL, &c, error);

    if (status != CPPROF_OK)
        return status;
    c->directory = directory;
    c->names_threads = names_threads;
    c->at_scan = at_scan;
    *out = &c->base;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__cpu_start(const struct cpprof_writer *writer,
                  const struct cpprof_cpu_options *options,
                  const struct cpprof__birth *birth, struct cpprof_error *error)
{
    struct cpprof_capture *c;
    enum cpprof_status status;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    status = cpprof__cpu_capture_new(options, writer, &c, error);
    if (status != CPPROF_OK)
        return status;
    ((struct cpprof__cpu_capture *)c)->streams = true;
    c->birth = birth;
    c->needs_samples = birth != NULL;
    return cpprof__default_start(c, error);
}

enum cpprof_status
cpprof_cpu_start(const struct cpprof_writer *writer,
                 const struct cpprof_cpu_options *options,
                 struct cpprof_error *error)
{
    return cpprof__cpu_start(writer, options, NULL, error);
}

enum cpprof_status
cpprof_cpu_start_to_path(const char *path,
                         const struct cpprof_cpu_options *options,
                         struct cpprof_error *error)
{
    return CPPROF__TO_PATH(path, error,
                           cpprof_cpu_start(&writer, options, error));
}

enum cpprof_status
cpprof_cpu_stop(struct cpprof_error *error)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    return cpprof__default_stop(&cpprof__cpu_life, error);
}

bool
cpprof_cpu_is_running(void)
{
    return cpprof__default_runs(&cpprof__cpu_life);
}
