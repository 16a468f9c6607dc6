/* SPDX-License-Identifier: MIT */
#include "profile/proto/sink.h"

#include "base/gzip.h"
#include "base/status.h"

#include <string.h>

/* How many bytes are handed over at a time. Plain bytes: what fits into the
 * processor's caches. Compressed: one gzip member, which should hold nearly
 * every profile whole, because some readers know only the first member of a
 * file. More takes as much more memory. */
#define PLAIN_BYTES  ((size_t)256 << 10)
#define MEMBER_BYTES ((size_t)32 << 20)

/* As if an allocation for the buffer had failed. */
static void
fail_nomem(struct cpprof__sink *sink)
{
    cpprof__buffer_free(&sink->buffer);
    sink->buffer.failed = true;
}

static void
hand_over(struct cpprof__sink *sink)
{
    const struct cpprof__buffer *bytes = &sink->buffer;

    if (sink->failure || !bytes->n)
        return;
    if (sink->level) {
        bytes = &sink->packed;
        sink->packed.n = 0;
        if (cpprof__gzip(&sink->packed, sink->buffer.data, sink->buffer.n,
                         sink->level, NULL) != CPPROF_OK) {
            fail_nomem(sink);
            return;
        }
    }
    sink->failure = sink->writer.write(sink->writer.ctx, bytes->data, bytes->n);
    sink->buffer.n = 0;
}

void
cpprof__sink_mind(struct cpprof__sink *sink)
{
    if (sink->buffer.n < (sink->level ? MEMBER_BYTES : PLAIN_BYTES))
        return;
    hand_over(sink);
    if (sink->failure)
        sink->buffer.n = 0;
}

enum cpprof_status
cpprof__sink_end(struct cpprof__sink *sink, enum cpprof_status status,
                 struct cpprof_error *error)
{
    int close_failure = 0;

    if (status == CPPROF_OK)
        hand_over(sink);
    if (status == CPPROF_OK && sink->buffer.failed)
        status = cpprof__fail_nomem(error);
    if (sink->writer.close)
        close_failure =
            sink->writer.close(sink->writer.ctx, status || sink->failure);
    cpprof__buffer_free(&sink->buffer);
    cpprof__buffer_free(&sink->packed);
    if (status == CPPROF_OK && (sink->failure || close_failure)) {
        int failure = sink->failure ? sink->failure : close_failure;

        status = cpprof__fail(error, CPPROF_SYSTEM, failure, "writing: %s",
                              strerror(failure));
    }
    return status;
}
