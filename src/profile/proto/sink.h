/* SPDX-License-Identifier: MIT */
/*
 * Where output goes: a buffer that is handed to a writer whenever it is large,
 * so that what is written is never in memory whole. On its way it may be
 * compressed, a gzip member for each large piece. Failure is sticky.
 */
#ifndef PROFILE_SINK_H
#define PROFILE_SINK_H

#include "base/buffer.h"
#include <cpprof/status.h>
#include <cpprof/writer.h>

struct cpprof__sink {
    struct cpprof__buffer buffer; /* append here, then call sink_mind() */
    struct cpprof_writer writer;
    int level;   /* 0: bytes as they are; 1 to 12: gzip them */
    int failure; /* errno of the writer; nothing more is written */
    struct cpprof__buffer packed; /* the sink's: a piece, compressed */
};

/* Hand over what is in the buffer once it is large. Call it now and then:
 * after each line or so. */
void
cpprof__sink_mind(struct cpprof__sink *sink);

/* Did the writer or an allocation fail? Then nothing more is written. */
static inline bool
cpprof__sink_broken(const struct cpprof__sink *sink)
{
    return sink->failure || sink->buffer.failed;
}

/* Hand over the rest, close the writer, free the buffer. `status` is what came
 * before; returned if it is a failure. */
enum cpprof_status
cpprof__sink_end(struct cpprof__sink *sink, enum cpprof_status status,
                 struct cpprof_error *error);

#endif
