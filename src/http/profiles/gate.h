/* SPDX-License-Identifier: MIT */
/*
 * What is made at the same time: profiles take memory while they are made, some
 * megabytes and more in a program with many stacks, and requests are as many as
 * there are clients. A few are made at once, others wait for their turn. They
 * are made in memory and sent when the turn is over, so that a slow reader
 * holds up nobody; what waits to be sent is small beside that, being
 * compressed.
 *
 * Captures are made one after the other already (cpprof_capture_stop()).
 */
#ifndef HTTP_GATE_H
#define HTTP_GATE_H

#include "base/buffer.h"
#include "http/call.h"

/* Tunable. */
#define CPPROF__GATE 3

/* False: the client left before it was its turn, and the answer has failed. */
bool
cpprof__turn_begin(struct cpprof__call *call);
void
cpprof__turn_end(void);

/* A profile that is made in a turn. */
struct cpprof__gate {
    struct cpprof__call *call;
    struct cpprof__answer_head head;
    struct cpprof__buffer body;
    bool has_turn, is_whole;
    bool is_kept_unsent; /* who writes is told whether it was sent */
};

/* False: the client left. */
bool
cpprof__gate_begin(struct cpprof__gate *gate, struct cpprof__call *call,
                   const struct cpprof__answer_head *head);

/* Where the profile is written to. */
struct cpprof_writer
cpprof__gate_writer(struct cpprof__gate *gate);

/* The turn is over: what was written is sent, or why it was not. */
void
cpprof__gate_end(struct cpprof__gate *gate, enum cpprof_status status,
                 const struct cpprof_error *error);

#endif
