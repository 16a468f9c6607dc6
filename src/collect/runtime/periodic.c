/* SPDX-License-Identifier: MIT */
/*
 * Each turn comes at a random moment of its own period. A fixed pace would see
 * periodic work of the program always or never. A thread that is told to stop
 * ends after the turn that it is in; so does one that finds that no thread of
 * the program is left.
 */
#include "collect/runtime/periodic.h"

#include "arch/atomic.h"
#include "arch/clock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Below n, which is not 0. */
static uint64_t
draw(struct cpprof__periodic *p, uint64_t n)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return p->random % n;
}

/* False: it is time to end. */
static bool
sleep_until(struct cpprof__periodic *p, uint64_t until)
{
    while (!load_acquire(&p->finish)) {
        uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
        struct timespec timeout;

        if (now >= until || load_acquire(p->wake) ||
            cpprof__own_threads_pause_now())
            return true;
        timeout = cpprof__timespec_of(until - now);
        syscall(SYS_futex, p->wake, FUTEX_WAIT, 0, &timeout, NULL, 0);
    }
    return false;
}

static uint64_t
length_of(const struct cpprof__periodic *p)
{
    return p->period_ns * (p->n_periods ? p->n_periods : 1);
}

static bool
run(void *arg)
{
    struct cpprof__periodic *p = arg;
    uint64_t begin = cpprof__now_ns(CLOCK_MONOTONIC), now;
    uint64_t length = length_of(p);

    p->random = begin | 1;
    while (sleep_until(p, begin + draw(p, length))) {
        if (cpprof__own_threads_pause_now())
            return true;
        p->turn(p);
        if (cpprof__own_thread_must_leave())
            return true;
        begin += length;
        length = length_of(p);
        now = cpprof__now_ns(CLOCK_MONOTONIC);
        if (now > begin + 2 * p->period_ns)
            begin = now; /* the process was stopped, or has no processor */
    }
    return false;
}

int
cpprof__periodic_start(struct cpprof__periodic *p)
{
    p->finish = 0;
    if (!p->wake)
        p->wake = &p->no_wake;
    store_relaxed(p->wake, 0u);
    p->thread = (struct cpprof__own_thread){
        .name = p->name,
        .run = run,
        .arg = p,
        .wake = p->wake,
        .flags = p->flags,
        .lost = p->lost,
    };
    return cpprof__own_thread_start(&p->thread);
}

void
cpprof__periodic_stop(struct cpprof__periodic *p)
{
    store_release(&p->finish, 1u);
    store_release(p->wake, 1u);
    cpprof__futex_wake(p->wake);
    cpprof__own_thread_join(&p->thread, UINT64_MAX);
}
