/* SPDX-License-Identifier: MIT */
/*
 * What the program's threads ask of the drainer, which alone can change perf
 * events (engine_perf.c), and what they do without it.
 */
#include "collect/threads/events.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/engine.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunable: how long who lowers the limit on signals waits for the drainer to
 * hold perf events, and how often it looks. */
#define ASK_NS      1000000000u
#define ASK_LOOK_NS 10000000

/* Tunable: how long an exec waits for the drainer before it uses up the credit
 * of its thread's event. */
#define SLEEP_NS 20000000u

static struct {
    uint32_t asked;  /* how often */
    uint32_t tended; /* futex: the last that was done */
} events;

/* ---- of the drainer ---------------------------------------------------- */

uint32_t
cpprof__events_asked(void)
{
    return load_acquire(&events.asked);
}

void
cpprof__events_tell_tended(uint32_t asked)
{
    store_release(&events.tended, asked);
    syscall(SYS_futex, &events.tended, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The lock is not needed for that: slots are never freed, and the drainer alone
 * opens and closes events. */
void
cpprof__events_hold(void)
{
    uint32_t asked = load_acquire(&events.asked), i;
    struct cpprof__thread *t;

    if (!cpprof__perf_is_forbidden())
        return;
    for (i = 0; (t = cpprof__thread_at(i)); i++)
        cpprof__perf_hold(t);
    cpprof__events_tell_tended(asked);
}

/* ---- of the program's threads ------------------------------------------ */

/* Wake the drainer, and wait until it has come, or a little. Safety: AS. */
static void
wait_for_drainer(uint32_t done)
{
    const struct timespec pause = {0, ASK_LOOK_NS};
    struct cpprof__ring *ring = load_acquire(&cpprof__sampler.ring);

    if (ring)
        cpprof__ring_wake(ring);
    syscall(SYS_futex, &events.tended, FUTEX_WAIT, done, &pause, NULL, 0);
}

/* Until the drainer has been there once more, or is late. Safety: AS. */
void
cpprof__events_ask(void)
{
    uint64_t until = cpprof__clock_ns(CLOCK_MONOTONIC) + ASK_NS;
    uint32_t mine = __atomic_add_fetch(&events.asked, 1, __ATOMIC_SEQ_CST),
             done;

    while (load_acquire(&cpprof__sampler.ring) &&
           (done = load_acquire(&events.tended), (int32_t)(mine - done) > 0) &&
           cpprof__clock_ns(CLOCK_MONOTONIC) < until)
        wait_for_drainer(done);
}

/* What the thread blocks stays pending for the new image, and blocked. */
static bool
is_still(void)
{
    uint64_t mask = 0;

    if (cpprof__perf_is_still((int32_t)syscall(SYS_gettid)))
        return true;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    return mask >> (CPPROF__SIGNAL - 1) & 1;
}

/* Events may tick in user mode only. */
static void
compute(void)
{
    volatile uint32_t i;

    for (i = 0; i < 10000; i++)
        ;
}

/*
 * The drainer holds all events, mostly within a millisecond. It may get no
 * processor, as where the program has all of them with SCHED_FIFO. Then the
 * thread computes until its event has sent what it may; twice that time is the
 * end where its signals do not come. While the drainer is at work on an event
 * the thread leaves it the processor, for a second at most.
 *
 * A thread that has no event yet may be about to get one.
 */
bool
cpprof__events_suspend(void)
{
    uint64_t begun = cpprof__clock_ns(CLOCK_MONOTONIC), until = 0, now;
    uint32_t done, n_waits = 0;

    if (!cpprof__perf_forbid())
        return false;
    add_relaxed(&events.asked, 1u);
    while (done = load_acquire(&events.tended), !is_still()) {
        bool waits = cpprof__perf_is_granting();

        now = cpprof__clock_ns(CLOCK_MONOTONIC);
        if (waits ? n_waits++ < ASK_NS / ASK_LOOK_NS : now - begun < SLEEP_NS) {
            wait_for_drainer(done);
            continue;
        }
        now = cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID);
        if (!until)
            until = now + 2 * cpprof__perf_credit_ns(cpprof__sampler.period_ns);
        if (waits || now >= until)
            break;
        compute();
    }
    return true;
}

/* The events go on at once: a program may try exec many times a second. */
void
cpprof__events_resume(void)
{
    struct cpprof__ring *ring = load_acquire(&cpprof__sampler.ring);

    cpprof__perf_allow();
    add_relaxed(&events.asked, 1u);
    if (ring)
        cpprof__ring_wake(ring);
}

void
cpprof__events_in_child(void)
{
    memset(&events, 0, sizeof events);
    cpprof__perf_in_child();
}
