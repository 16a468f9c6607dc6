/* SPDX-License-Identifier: MIT */
/*
 * Where text goes: a buffer that is handed to a writer whenever it is large,
 * so that what is written is never in memory whole. Failure is sticky.
 */
#ifndef PROFILE_SINK_H
#define PROFILE_SINK_H

#include "base/buffer.h"
#include <cpprof/status.h>
#include <cpprof/writer.h>

struct cpprof__sink {
    struct cpprof__buffer buffer; /* append here, then call sink_mind() */
    struct cpprof_writer writer;
    int failure; /* errno of the writer; nothing more is written */
};

/* Hand over what is in the buffer once it is large. Call it now and then:
 * after each line or so. */
void
cpprof__sink_mind(struct cpprof__sink *sink);

/* Hand over the rest, close the writer, free the buffer. `status` is what came
 * before; returned if it is a failure. */
enum cpprof_status
cpprof__sink_finish(struct cpprof__sink *sink, enum cpprof_status status,
                    struct cpprof_error *error);

#endif
