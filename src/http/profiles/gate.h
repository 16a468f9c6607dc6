/* SPDX-License-Identifier: MIT */
/*
 * Limits how many profiles are made at the same time. Making one takes some
 * megabytes, more in a program with many stacks, and the number of requests is
 * up to the clients. A few profiles are made at once; other requests wait for
 * their turn. A profile is made in memory and sent when its turn is over, so
 * that a slow reader holds up nobody. What waits to be sent is compressed and
 * small beside that.
 *
 * Captures are made one after the other already (cpprof_capture_stop()).
 */
#ifndef HTTP_GATE_H
#define HTTP_GATE_H

#include "base/buffer.h"
#include "http/call.h"

/* Tunable. */
#define CPPROF__GATE 3

/* Wait for a turn. False: the client left, and the answer has failed. */
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

/* End the turn, then send what was written or the reason why it failed. */
void
cpprof__gate_end(struct cpprof__gate *gate, enum cpprof_status status,
                 const struct cpprof_error *error);

#endif
