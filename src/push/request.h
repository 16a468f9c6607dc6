/* SPDX-License-Identifier: MIT */
/* One request that brings a profile: its headers, and what the answer means. */
#ifndef PUSH_REQUEST_H
#define PUSH_REQUEST_H

#include "push/plan.h"
#include "push/plugin.h"
#include "push/queue.h"

enum cpprof__push_outcome {
    CPPROF__PUSH_SENT,
    CPPROF__PUSH_AGAIN, /* later */
    CPPROF__PUSH_REFUSED,
};

/* Send it once. cancelled: see plugin.h. */
void
cpprof__push_request(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_http *http, void *connection,
                     const struct cpprof__push_message *message,
                     const uint32_t *cancelled,
                     struct cpprof__push_reply *reply);

enum cpprof__push_outcome
cpprof__push_outcome(const struct cpprof__push_plan *plan, int status);

/* Has a profile waited so long since its end that Pyroscope would refuse it, by
 * its defaults? Both are since 1970. */
bool
cpprof__push_is_too_old(const struct cpprof__push_plan *plan, int64_t until_ns,
                        int64_t now_ns);

/* A time of less than `most` at random, so that many processes do not come at
 * the same time. */
uint64_t
cpprof__push_random_ns(uint64_t most);

/* How long a server is left alone that could not n + 1 times. */
uint64_t
cpprof__push_pause_ns(unsigned n_failures, uint32_t asked_s);

/* What an answer says, in one line; `end` says what becomes of the request. A
 * request that was taken: what the server says beside, or "". */
void
cpprof__push_say(const struct cpprof__push_plan *plan,
                 const struct cpprof__push_reply *reply, const char *end,
                 char *line, size_t n);
void
cpprof__push_say_rejected(const struct cpprof__push_plan *plan,
                          const struct cpprof__push_reply *reply, char *line,
                          size_t n);

#endif
