/* SPDX-License-Identifier: MIT */
/*
 * Timers that bring questions; question_timer.h has the idea.
 *
 * A place is free, or belongs to one question from its first sending to its
 * end. Its word says whose it is and what is going on: the tid, and whether
 * somebody is setting the timer now. A thread that is about to block the signal
 * stops the timers of all places with its tid, after it has waited for who is
 * setting one, but not for ever.
 *
 * Invariants: numbers of timers are not used again soon by the kernel, so one
 * that was deleted meanwhile cannot be met.
 */
#include "collect/signal/sample/question_timer.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/signal/sample/sampler.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunable: looks at a place that is being set. More waits longer for who has
 * lost its processor; less may leave a signal pending. */
#define LOOKS_MAX 1000

#define IS_SETTING 0x80000000u

static struct place {
    uint32_t word;  /* tid, and IS_SETTING; 0: free */
    uint32_t timer; /* the kernel's number, and one; 0: none */
    uint32_t is_set;
} places[CPPROF__QUESTIONS_MAX];
static uint32_t n_places; /* that may be or have been in use */

static struct place *
take_place(int32_t tid, uint32_t *number)
{
    uint32_t i, n;

    for (i = 0; i < CPPROF__QUESTIONS_MAX; i++) {
        uint32_t nobody = 0;

        if (load_relaxed(&places[i].word))
            continue;
        n = load_relaxed(&n_places); /* first: a child clears so many */
        while (n <= i && !cas_acq_rel(&n_places, &n, i + 1))
            continue;
        if (!cas_acq_rel(&places[i].word, &nobody, (uint32_t)tid | IS_SETTING))
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

    __builtin_memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = CPPROF__SIGNAL;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)value;
    event._sigev_un._tid = tid;
    if (syscall(SYS_timer_create, CPPROF__THREAD_CPU_CLOCK(tid), &event, &id))
        return errno == EINVAL ? ESRCH : errno;
    store_release(&p->timer, (uint32_t)id + 1);
    return 0;
}

/* ns: of the thread's CPU time, from now on; 0: stop. A moment that is past
 * already would be a signal at once, even to who sleeps. */
static void
set(const struct place *p, long ns)
{
    const struct itimerspec when = {{0, 0}, {0, ns}};
    uint32_t timer = load_acquire(&p->timer);

    if (timer)
        syscall(SYS_timer_settime, timer - 1, 0, &when, NULL);
}

int
cpprof__question_send(int32_t tid, uint64_t value, cpprof__may_ask *may,
                      void *arg, uint32_t *place)
{
    struct place *p = *place ? &places[*place - 1] : take_place(tid, place);
    int failed = 0;

    if (!p)
        return EAGAIN;
    __atomic_store_n(&p->word, (uint32_t)tid | IS_SETTING, __ATOMIC_SEQ_CST);
    if (!may(tid, arg)) {
        failed = EBUSY;
    } else {
        if (!p->timer)
            failed = create(tid, value, p);
        store_relaxed(&p->is_set, 1u);
        set(p, 1);
    }
    store_release(&p->word, (uint32_t)tid);
    if (failed && failed != EBUSY)
        cpprof__question_end(place);
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
    store_relaxed(&p->is_set, 0u);
    store_release(&p->word, 0u);
}

bool
cpprof__questions_stop(void)
{
    uint32_t i, n = __atomic_load_n(&n_places, __ATOMIC_SEQ_CST), word;
    uint32_t tid = n ? (uint32_t)syscall(SYS_gettid) : 0;
    bool had_some = false;

    for (i = 0; i < n; i++) {
        unsigned looks = 0;

        word = __atomic_load_n(&places[i].word, __ATOMIC_SEQ_CST);
        if ((word & ~IS_SETTING) != tid)
            continue;
        while (word & IS_SETTING && ++looks < LOOKS_MAX) {
            syscall(SYS_sched_yield);
            word = load_acquire(&places[i].word);
        }
        set(&places[i], 0);
        had_some |= swap_acq_rel(&places[i].is_set, 0u);
    }
    return had_some;
}

void
cpprof__questions_in_child(void)
{
    __builtin_memset(places, 0, n_places * sizeof *places);
    n_places = 0;
}
