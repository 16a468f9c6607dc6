/* SPDX-License-Identifier: MIT */
/* The public calls of <cpprof/cpprof.h>. */
#include "base/options.h"
#include "base/status.h"
#include "collect/cpu/session.h"

#include <string.h>

/* A caller built against an older header has a shorter struct: the rest gets
 * defaults. One built against a newer header may use only what is known here:
 * the rest must be zero. */
static enum cpprof_status
take_options(const struct cpprof_cpu_options *given,
             struct cpprof_cpu_options *options, struct cpprof_error *error)
{
    memset(options, 0, sizeof *options);
    return cpprof__options(options, sizeof *options, given,
                           "cpprof_cpu_options", error);
}

enum cpprof_status
cpprof_cpu_start(struct cpprof_writer writer,
                 const struct cpprof_cpu_options *options,
                 struct cpprof_error *error)
{
    struct cpprof__session_plan plan = {.writer = writer};
    enum cpprof_status status = take_options(options, &plan.options, error);

    if (status == CPPROF_OK && !writer.write)
        status = cpprof__fail(error, CPPROF_INVALID, 0,
                              "the writer has no write function");
    if (status != CPPROF_OK) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return status;
    }
    return cpprof__session_start(&plan, error);
}

enum cpprof_status
cpprof_cpu_stop(struct cpprof_error *error)
{
    return cpprof__session_stop(error);
}
