/* SPDX-License-Identifier: MIT */
/*
 * How much is done at the same time, as the number of requests is up to the
 * clients.
 *
 * Requests that take a number of seconds: how long, whether one more may run,
 * and the wait itself.
 *
 * Making a profile takes some megabytes, more in a program with many stacks. A
 * few are made at once; other requests wait for their turn. A profile is made
 * in memory and sent when its turn is over, so that a slow reader holds up
 * nobody. What waits to be sent is compressed and small beside that. Captures
 * are made one after the other already (cpprof_capture_stop()).
 */
#ifndef HTTP_LIMITS_H
#define HTTP_LIMITS_H

#include "base/buffer.h"
#include "http/call.h"

#include <cpprof/captures.h>

/* ---- requests of some seconds ------------------------------------------ */

/* The text of Go's server with a WriteTimeout. */
#define CPPROF__TOO_LONG "profile duration exceeds server's WriteTimeout"

#define CPPROF__BAD_SECONDS                                                    \
    "invalid value for \"seconds\" - must be a positive integer"

/* Longer than the server lets it be. */
bool
cpprof__timed_is_too_long(const struct cpprof__call *call, int64_t seconds);

/* Counts how many of a kind run in this process; a forked child begins with 0.
 * Zero it. count_up() returns false if there are max already. */
struct cpprof__timed_count {
    uint64_t value;
};
bool
cpprof__timed_count_up(struct cpprof__timed_count *count, uint32_t max);
void
cpprof__timed_count_down(struct cpprof__timed_count *count);

/* False: answered, there are too many at once. Else cpprof__timed_end(). */
bool
cpprof__timed_begin(struct cpprof__call *call);
void
cpprof__timed_end(void);

/* False: the client has left, and the answer has failed. */
bool
cpprof__timed_wait(struct cpprof__call *call, int64_t seconds);

/* Sleep for ns before looking again whether another request is done. False: the
 * client has left, and the answer has failed. */
bool
cpprof__look_again(struct cpprof__call *call, uint64_t ns);

/* ---- profiles in the making -------------------------------------------- */

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

/* The profile is to be written to this. */
struct cpprof_writer
cpprof__gate_writer(struct cpprof__gate *gate);

/* End the turn, then send what was written or the reason why it failed. */
void
cpprof__gate_end(struct cpprof__gate *gate, enum cpprof_status status,
                 const struct cpprof_error *error);

#endif
