/* SPDX-License-Identifier: MIT */
/* Requests that bring profiles: their headers, and what answers mean. */
#ifndef PUSH_REQUEST_H
#define PUSH_REQUEST_H

#include "push/plan.h"
#include "push/plugin.h"
#include "push/queue.h"

/* Of a line that says what a server has answered. */
#define CPPROF__PUSH_LINE_BYTES 800

/* Tunable: how long a server may take. */
#define CPPROF__PUSH_TIMEOUT_MS 10000u

enum cpprof__push_outcome {
    CPPROF__PUSH_SENT,
    CPPROF__PUSH_AGAIN, /* later */
    CPPROF__PUSH_TOO_LARGE,
    CPPROF__PUSH_REFUSED,
};

/* Send each of n once, all at the same time: CPPROF__PUSH_AT_ONCE at most.
 * cancelled: see plugin.h. */
void
cpprof__push_requests(const struct cpprof__push_plan *plan,
                      const struct cpprof__push_http *http, void *connection,
                      struct cpprof__push_message *const *messages, unsigned n,
                      const uint32_t *cancelled,
                      struct cpprof__push_reply *replies);

enum cpprof__push_outcome
cpprof__push_outcome(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_reply *reply);

/* A request of n_body bytes is too large: those that follow should have no more
 * than *most_bytes, which is made less, and stays so. False: so few bytes are
 * not why. */
bool
cpprof__push_lower(size_t *most_bytes, size_t n_body);

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
 * request that was taken: what the server says beside, or "". True: it left out
 * some of it. */
void
cpprof__push_say(const struct cpprof__push_plan *plan,
                 const struct cpprof__push_reply *reply, const char *end,
                 char *line, size_t n);
bool
cpprof__push_say_rejected(const struct cpprof__push_plan *plan,
                          const struct cpprof__push_reply *reply, char *line,
                          size_t n);

#endif
