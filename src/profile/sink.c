/* SPDX-License-Identifier: MIT */
#include "profile/sink.h"

#include "base/status.h"

#include <string.h>

#define LARGE ((size_t)256 << 10)

static void
hand_over(struct cpprof__sink *sink)
{
    if (!sink->failure && sink->buffer.n)
        sink->failure = sink->writer.write(sink->writer.ctx, sink->buffer.data,
                                           sink->buffer.n);
    sink->buffer.n = 0;
}

void
cpprof__sink_mind(struct cpprof__sink *sink)
{
    if (sink->buffer.n >= LARGE)
        hand_over(sink);
}

enum cpprof_status
cpprof__sink_finish(struct cpprof__sink *sink, enum cpprof_status status,
                    struct cpprof_error *error)
{
    int close_failure = 0;

    if (status == CPPROF_OK && sink->buffer.failed)
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK)
        hand_over(sink);
    if (sink->writer.close)
        close_failure =
            sink->writer.close(sink->writer.ctx, status || sink->failure);
    cpprof__buffer_free(&sink->buffer);
    if (status == CPPROF_OK && (sink->failure || close_failure)) {
        int failure = sink->failure ? sink->failure : close_failure;

        status = cpprof__fail(error, CPPROF_SYSTEM, failure, "writing: %s",
                              strerror(failure));
    }
    return status;
}
