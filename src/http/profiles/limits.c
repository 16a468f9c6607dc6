/* SPDX-License-Identifier: MIT */
/*
 * How much is done at the same time.
 *
 * A turn is one of a counted few. Who finds none free looks again after a
 * while, and at each look whether the client is still there. The profile is
 * written into memory during the turn and sent after it.
 *
 * Invariants: a turn that was begun is ended exactly once, also when making
 * the profile fails.
 */
#include "http/profiles/limits.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/runtime/exempt.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CAPTURES_MAX 128u

/* How long a request sleeps between two looks: twice as long each time. */
#define LOOK_NS     1000000u
#define LOOK_MAX_NS 32000000u

bool
cpprof__timed_is_too_long(const struct cpprof__call *call, int64_t seconds)
{
    return call->request.max_seconds && seconds > call->request.max_seconds;
}

/* ---- how many --------------------------------------------------------- */

/* The upper half is the number of the process. */
static uint64_t
own(uint64_t value)
{
    uint64_t pid = (uint64_t)(uint32_t)getpid() << 32;

    return (value & ~(uint64_t)UINT32_MAX) == pid ? value : pid;
}

bool
cpprof__timed_count_up(struct cpprof__timed_count *count, uint32_t max)
{
    uint64_t old = load_relaxed(&count->value);

    do
        if ((uint32_t)own(old) >= max)
            return false;
    while (!cas_acq_rel(&count->value, &old, own(old) + 1));
    return true;
}

void
cpprof__timed_count_down(struct cpprof__timed_count *count)
{
    uint64_t old = load_relaxed(&count->value);

    while ((uint32_t)own(old) &&
           !cas_acq_rel(&count->value, &old, own(old) - 1))
        ;
}

static struct cpprof__timed_count running;

bool
cpprof__timed_begin(struct cpprof__call *call)
{
    uint32_t max = call->request.max_captures;

    max = max ? max : CAPTURES_MAX;
    if (cpprof__timed_count_up(&running, max))
        return true;
    cpprof__answer_error(&call->answer, 503,
                         "%u captures run already, which is the most that "
                         "this server runs at once",
                         max);
    return false;
}

void
cpprof__timed_end(void)
{
    cpprof__timed_count_down(&running);
}

/* ---- waiting ---------------------------------------------------------- */

static void
sleep_ns(uint64_t ns)
{
    const struct timespec end =
        cpprof__timespec_of(cpprof__now_ns(CLOCK_MONOTONIC) + ns);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        ;
}

bool
cpprof__timed_wait(struct cpprof__call *call, int64_t seconds)
{
    const struct cpprof_http_request *request = &call->request;
    uint64_t ns = seconds < INT64_MAX / CPPROF__NS_PER_S
                      ? (uint64_t)seconds * CPPROF__NS_PER_S
                      : INT64_MAX;

    if (!request->wait)
        sleep_ns(ns);
    else if (request->wait(request->ctx, ns) && !call->answer.sys)
        call->answer.sys = ECANCELED;
    return !call->answer.sys;
}

/* A server that ends does not wait, so the thread sleeps by itself. */
bool
cpprof__look_again(struct cpprof__call *call, uint64_t ns)
{
    sleep_ns(ns);
    if (call->request.wait && call->request.wait(call->request.ctx, 0))
        call->answer.sys = ECANCELED;
    return !call->answer.sys;
}

/* ---- profiles in the making ------------------------------------------- */

static struct cpprof__timed_count made;

bool
cpprof__turn_begin(struct cpprof__call *call)
{
    uint64_t ns = LOOK_NS;

    while (!cpprof__timed_count_up(&made, CPPROF__GATE)) {
        if (!cpprof__look_again(call, ns))
            return false;
        ns = ns < LOOK_MAX_NS ? 2 * ns : ns;
    }
    return true;
}

void
cpprof__turn_end(void)
{
    cpprof__timed_count_down(&made);
}

bool
cpprof__gate_begin(struct cpprof__gate *gate, struct cpprof__call *call,
                   const struct cpprof__answer_head *head)
{
    memset(gate, 0, sizeof *gate);
    gate->call = call;
    gate->head = *head;
    gate->has_turn = cpprof__turn_begin(call);
    return gate->has_turn;
}

static void
end_turn(struct cpprof__gate *gate)
{
    if (gate->has_turn)
        cpprof__turn_end();
    gate->has_turn = false;
}

static int
send_body(struct cpprof__gate *gate)
{
    struct cpprof__answer *a = &gate->call->answer;

    end_turn(gate);
    cpprof__answer_begin(a, &gate->head);
    return cpprof__answer_write(a, gate->body.data, gate->body.n);
}

static int
write_body(void *ctx, const void *data, size_t n)
{
    struct cpprof__gate *gate = ctx;
    CPPROF__EXEMPT;

    cpprof__buffer_append(&gate->body, data, n);
    return gate->body.failed ? ENOMEM : 0;
}

static int
close_body(void *ctx, int failed)
{
    struct cpprof__gate *gate = ctx;

    gate->is_whole = !failed;
    return failed || !gate->is_kept_unsent ? 0 : send_body(gate);
}

struct cpprof_writer
cpprof__gate_writer(struct cpprof__gate *gate)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), write_body,
                                  close_body, gate};
}

void
cpprof__gate_end(struct cpprof__gate *gate, enum cpprof_status status,
                 const struct cpprof_error *error)
{
    CPPROF__EXEMPT;

    end_turn(gate);
    if (gate->is_whole && !gate->is_kept_unsent)
        send_body(gate);
    cpprof__answer_end(&gate->call->answer, status, error);
    cpprof__buffer_free(&gate->body);
}
