/* SPDX-License-Identifier: MIT */
/*
 * timer_create on the CPU clock of each thread. It rides on the scheduler's
 * tick, so it costs nothing and delivers at most CONFIG_HZ; what it could not
 * deliver is in si_overrun. Raw system calls: glibc's wrapper allocates.
 *
 * A timer has a place in the queue of signals for as long as it is there. With
 * none left setuid() would leave threads as they were, since libc could not
 * signal them, and no thread could be cancelled. So we take at most half.
 *
 * Source: timer_create(2).
 */
#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/kernel.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/signal/sample/question_timer.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/engine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread that runs may use this until its timer is set. */
#define AHEAD_NS 20000u

static uint32_t n_timers CPPROF__AT_START; /* of threads */

bool
cpprof__timers_are_many(uint64_t more)
{
    struct rlimit limit;

    return !getrlimit(RLIMIT_SIGPENDING, &limit) &&
           load_relaxed(&n_timers) + more > limit.rlim_cur / 2;
}

CPPROF__FIRST_STEP void
cpprof__timers_in_child(void)
{
    n_timers = 0;
}

static int
create(int32_t tid, uint64_t value, int32_t *timer_id)
{
    struct sigevent event;

    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = CPPROF__SIGNAL;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)value;
    event.sigev_notify_thread_id = tid;
    return (int)syscall(SYS_timer_create, CPPROF__THREAD_CPU_CLOCK(tid), &event,
                        timer_id);
}

static enum cpprof_status
timer_open(uint64_t period_ns, struct cpprof_error *error)
{
    int32_t id;

    (void)period_ns;
    if (cpprof__cpu_timers_are_fatal())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "a timer would end the process (ulimit -R 0, or "
                            "system calls are led to a handler of SIGSYS)");
    if (create((int32_t)syscall(SYS_gettid), 0, &id))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, errno,
                            "timer_create: %s", strerror(errno));
    syscall(SYS_timer_delete, id);
    return CPPROF_OK;
}

/* If that fails the timer is gone. */
static int
set(int32_t timer_id, uint64_t at_ns, uint64_t period_ns)
{
    struct itimerspec when = {cpprof__timespec_of(period_ns),
                              cpprof__timespec_of(at_ns)};
    int failed;

    if (!syscall(SYS_timer_settime, timer_id, TIMER_ABSTIME, &when, NULL))
        return 0;
    failed = errno;
    syscall(SYS_timer_delete, timer_id);
    return failed;
}

int
cpprof__timer_start(int32_t tid, uint64_t value, uint64_t at_ns,
                    uint64_t period_ns, int32_t *timer_id)
{
    if (cpprof__cpu_timers_are_fatal())
        return EAGAIN;
    if (create(tid, value, timer_id))
        return errno;
    return set(*timer_id, at_ns, period_ns);
}

/* The next tick is set as a reading of the thread's clock. One that is past
 * already would be a signal at once, even to a thread that sleeps. So the next
 * one counts what was missed: the time before a thread was found. */
void
cpprof__timer_arm(struct cpprof__thread *t, uint64_t period_ns)
{
    uint64_t now = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
    uint64_t due = cpprof__ticks_due(t, now + AHEAD_NS, period_ns);
    uint64_t had = load_relaxed(&t->delivered), at_ns;

    if (cpprof__timers_are_many(1) || cpprof__cpu_timers_are_fatal())
        return;
    if (due > had)
        store_release(&t->missed, due - had);
    else
        due = had;
    at_ns = t->base_ns + t->phase_ns + due * period_ns;

    if (create(t->tid, cpprof__timer_value(t), &t->timer_id) ||
        set(t->timer_id, at_ns, period_ns))
        return;
    store_release(&t->has_timer, true);
    add_relaxed(&n_timers, 1u);
}

void
cpprof__timer_disarm(struct cpprof__thread *t)
{
    if (t->has_timer) {
        syscall(SYS_timer_delete, t->timer_id);
        add_relaxed(&n_timers, -1u);
    }
    t->has_timer = false;
}

const struct cpprof__engine cpprof__engine_timer = {"timer", timer_open};
