/* SPDX-License-Identifier: MIT */
#include "http/profiles/timed.h"

#include "arch/atomic.h"
#include "arch/clock.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define CAPTURES_MAX 128u

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
