/* SPDX-License-Identifier: MIT */
/*
 * Requests that take a number of seconds: how long, whether one more may run,
 * and the wait itself.
 */
#ifndef HTTP_TIMED_H
#define HTTP_TIMED_H

#include "http/call.h"

#include <cpprof/captures.h>

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

#endif
