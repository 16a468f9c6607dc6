/* SPDX-License-Identifier: MIT */
/*
 * What the program's threads ask of the drainer, which alone can change perf
 * events (engine_perf.c).
 */
#include "collect/threads/events.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
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
 * close perf events, and how often it looks. */
#define ASK_NS      1000000000u
#define ASK_LOOK_NS 10000000

static struct {
    uint32_t asked;  /* how often */
    uint32_t tended; /* futex: the last that was done */
} events CPPROF__AT_START;

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

CPPROF__FIRST_STEP void
cpprof__events_in_child(void)
{
    memset(&events, 0, sizeof events);
    cpprof__perf_in_child();
}
