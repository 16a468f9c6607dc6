/* SPDX-License-Identifier: MIT */
/*
 * setitimer(ITIMER_PROF): one timer for the process, whose signal lands on
 * some running thread. The last resort: its share between threads is skewed,
 * and it survives an exec, where the signal would kill the new image
 * (session_changes.c takes it away before).
 *
 * A program that sets the timer itself has it from then on (pause.h): the rest
 * of the CPU time is [signal blocked].
 */
#include "arch/atomic.h"
#include "base/status.h"
#include "collect/signal/sample/pause.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static enum cpprof_status
itimer_open(uint64_t period_ns, struct cpprof_error *error)
{
    struct itimerval now;

    (void)period_ns;
    if (getitimer(ITIMER_PROF, &now))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, errno, "getitimer: %s",
                            strerror(errno));
    if (now.it_value.tv_sec || now.it_value.tv_usec)
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "the program uses ITIMER_PROF itself");
    return CPPROF_OK;
}

/* The first thread of a session sets the timer for all. */
static int
itimer_arm(struct cpprof__thread *t, uint64_t period_ns)
{
    struct cpprof__sampler *s = &cpprof__sampler;

    (void)t;
    if (s->itimer_base_ns)
        return 0;
    cpprof__itimer_take();
    store_relaxed(&s->itimer_delivered, 0u);
    store_relaxed(&s->itimer_base_ns,
                  cpprof__clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return cpprof__itimer_may_run() ? cpprof__itimer_set(period_ns) : 0;
}

static bool
itimer_is_armed(const struct cpprof__thread *t)
{
    (void)t;
    return true;
}

static void
itimer_disarm(struct cpprof__thread *t)
{
    (void)t;
}

void
cpprof__itimer_pause(void)
{
    cpprof__itimer_set(0);
}

void
cpprof__itimer_go_on(uint64_t period_ns)
{
    if (cpprof__itimer_may_run())
        cpprof__itimer_set(period_ns);
}

static void
itimer_close(void)
{
    if (!cpprof__itimer_may_run())
        cpprof__itimer_charge_blocked();
    cpprof__itimer_set(0);
    store_relaxed(&cpprof__sampler.itimer_base_ns, 0u);
}

const struct cpprof__engine cpprof__engine_itimer = {
    "itimer",        itimer_open,   itimer_arm,
    itimer_is_armed, itimer_disarm, itimer_close};
