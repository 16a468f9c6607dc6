/* SPDX-License-Identifier: MIT */
/* The public calls of <cpprof/cpprof.h>. */
#include "base/status.h"
#include "collect/session.h"

#include <string.h>

/* A caller built against an older header has a shorter struct: the rest gets
 * defaults. One built against a newer header may use only what is known here:
 * the rest must be zero. */
static enum cpprof_status
take_options(const struct cpprof_cpu_options *given,
             struct cpprof_cpu_options *options, struct cpprof_error *error)
{
    const unsigned char *bytes = (const unsigned char *)given;
    size_t i;

    memset(options, 0, sizeof *options);
    if (!given)
        return CPPROF_OK;
    if (given->size < sizeof given->size)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "cpprof_cpu_options.size %zu is not a size",
                            given->size);
    for (i = sizeof *options; i < given->size; i++)
        if (bytes[i])
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "cpprof_cpu_options has fields that this "
                                "version does not know");
    memcpy(options, given,
           given->size < sizeof *options ? given->size : sizeof *options);
    return CPPROF_OK;
}

enum cpprof_status
cpprof_start_cpu_profile(struct cpprof_writer writer,
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
cpprof_stop_cpu_profile(struct cpprof_error *error)
{
    return cpprof__session_stop(error);
}
