/* SPDX-License-Identifier: MIT */
/*
 * Timers that bring questions; question_timer.h has the idea.
 *
 * A place is free, or belongs to one question from its first sending to its
 * end; a timer on one thread's clock belongs to it.
 *
 * Invariants: numbers of timers are not used again soon by the kernel, so one
 * that was deleted meanwhile cannot be met. Who takes a place looks whether
 * signals are refused after that, and who refuses them looks for places after
 * that: one of the two sees the other.
 */
#include "collect/signal/sample/question_timer.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/kernel.h"
#include "arch/place.h"
#include "collect/signal/sample/sampler.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long who goes waits for questions, and how often it looks. */
#define WAIT_NS 1000000000u
#define LOOK_NS 100000u

static struct place {
    int32_t tid;    /* 0: free */
    uint32_t timer; /* the kernel's number, and one; 0: none */
} places[CPPROF__QUESTIONS_MAX] CPPROF__LARGE;
static uint32_t n_places CPPROF__AT_START; /* that may be or have been in use */

bool
cpprof__cpu_timers_are_fatal(void)
{
    uint64_t limit[2]; /* struct rlimit64 */

    if (cpprof__sampler_is_refused())
        return true;
    return !syscall(SYS_prlimit64, 0, RLIMIT_RTTIME, NULL, limit) &&
           (!limit[0] || !limit[1]);
}

/* A timer has a place in the queue of signals as long as it is there; most are
 * left to the program and to libc, as threads/engine_timer.c tells. */
static uint64_t
places_max(void)
{
    uint64_t limit[2]; /* struct rlimit64 */

    if (cpprof__cpu_timers_are_fatal() ||
        syscall(SYS_prlimit64, 0, RLIMIT_SIGPENDING, NULL, limit))
        return 0;
    return limit[0] / 4 < CPPROF__QUESTIONS_MAX ? limit[0] / 4
                                                : CPPROF__QUESTIONS_MAX;
}

static struct place *
take_place(int32_t tid, uint32_t *number)
{
    uint64_t max = places_max();
    uint32_t i, n;

    for (i = 0; i < max; i++) {
        int32_t nobody = 0;

        if (load_relaxed(&places[i].tid))
            continue;
        n = load_relaxed(&n_places); /* first: a child clears so many */
        while (n <= i && !cas_acq_rel(&n_places, &n, i + 1))
            continue;
        if (!cas_acq_rel(&places[i].tid, &nobody, tid))
            continue;
        *number = i + 1;
        return &places[i];
    }
    return NULL;
}

static int
create(int32_t tid, uint64_t value, struct place *p)
{
    struct sigevent event;
    int32_t id;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (cpprof__cpu_timers_are_fatal())
        return EAGAIN;
    __builtin_memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = CPPROF__SIGNAL;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)value;
    event.sigev_notify_thread_id = tid;
    if (syscall(SYS_timer_create, CPPROF__THREAD_CPU_CLOCK(tid), &event, &id))
        return errno == EINVAL ? ESRCH : errno;
    store_release(&p->timer, (uint32_t)id + 1);
    return 0;
}

/* At the next moment of the thread's CPU time: one that is past already would
 * be a signal at once, even to who sleeps. */
static void
set(const struct place *p)
{
    const struct itimerspec when = {{0, 0}, {0, 1}};
    uint32_t timer = load_acquire(&p->timer);

    if (timer)
        syscall(SYS_timer_settime, timer - 1, 0, &when, NULL);
}

int
cpprof__question_send(int32_t tid, uint64_t value, uint32_t *place)
{
    struct place *p = *place ? &places[*place - 1] : take_place(tid, place);
    int failed = 0;

    if (!p)
        return EAGAIN;
    if (!p->timer)
        failed = create(tid, value, p);
    if (failed)
        cpprof__question_end(place);
    else
        set(p);
    return failed;
}

void
cpprof__question_end(uint32_t *place)
{
    struct place *p;

    if (!*place)
        return;
    p = &places[*place - 1];
    *place = 0;
    if (p->timer)
        syscall(SYS_timer_delete, p->timer - 1);
    store_relaxed(&p->timer, 0u);
    store_release(&p->tid, 0);
}

void
cpprof__questions_wait(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    uint64_t until = cpprof__clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    uint32_t i;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (i = 0; i < load_relaxed(&n_places); i++)
        while (load_acquire(&places[i].tid) == tid &&
               cpprof__clock_ns(CLOCK_MONOTONIC) < until)
            cpprof__sleep_ns(LOOK_NS);
}

CPPROF__FIRST_STEP void
cpprof__questions_in_child(void)
{
    __builtin_memset(places, 0, n_places * sizeof *places);
    n_places = 0;
}
