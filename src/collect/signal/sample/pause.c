/* SPDX-License-Identifier: MIT */
/*
 * The pauses of threads that block the sampling signal; pause.h has the idea.
 *
 * Protocol: `pace` of a slot changes by compare-and-swap. Who arms a thread
 * sets is_arming meanwhile, and arms nothing that is paused; who pauses waits
 * for the end of that, which is two system calls away, but not for ever: the
 * other may have lost its processor.
 *
 * Ticks that fell due in a pause are charged by whoever comes first, a scan or
 * the thread itself, and counted in precharged_ticks by compare-and-swap. When
 * the thread goes on they become delivered ticks, since no signal will bring
 * them.
 */
#include "collect/signal/sample/pause.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/signal/sample/question_timer.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/stack_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* Tunable: how often is_arming is looked at. More waits longer for who has
 * lost its processor; less may leave a signal pending. */
#define LOOKS_MAX 1000

void (*cpprof__script_pause)(bool pauses);

/* Threads that block the signal, as far as they said so by a call. */
static uint32_t n_closed;

static const uint64_t only_ours = 1ull << (CPPROF__SIGNAL - 1);

/* ---- the kernel's part ------------------------------------------------ */

static void
set_timer(const struct cpprof__thread *t, uint64_t at_ns, uint64_t period_ns)
{
    const struct itimerspec when = {cpprof__timespec_of(period_ns),
                                    cpprof__timespec_of(at_ns)};

    syscall(SYS_timer_settime, load_relaxed(&t->timer_id), TIMER_ABSTIME, &when,
            NULL);
}

/* A descriptor that sends our signal to this thread is ours. */
static bool
has_event(const struct cpprof__thread *t, int fd)
{
    struct f_owner_ex owner = {0, 0};

    return fd >= 0 && syscall(SYS_fcntl, fd, F_GETSIG) == CPPROF__SIGNAL &&
           !syscall(SYS_fcntl, fd, F_GETOWN_EX, &owner) &&
           owner.type == F_OWNER_TID && owner.pid == load_relaxed(&t->tid);
}

static void
set_event(const struct cpprof__thread *t, unsigned long how)
{
    uint64_t period_ns = cpprof__sampler.period_ns;
    int fd = load_relaxed(&t->perf_fd);

    if (!has_event(t, fd))
        return;
    if (how == PERF_EVENT_IOC_ENABLE) /* its first period may be shorter */
        syscall(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, &period_ns);
    syscall(SYS_ioctl, fd, how, 0);
}

/* ---- one thread ------------------------------------------------------- */

/* No ticks for t from here on. False: it was paused already. */
static bool
pause_thread(struct cpprof__thread *t, enum cpprof__pace why)
{
    uint32_t before = load_relaxed(&t->pace);
    unsigned looks = 0;

    if (before == (uint32_t)why)
        return false;
    __atomic_exchange_n(&t->pace, (uint32_t)why, __ATOMIC_SEQ_CST);
    while (load_acquire(&t->is_arming) && ++looks < LOOKS_MAX)
        syscall(SYS_sched_yield);
    if (load_relaxed(&t->has_timer))
        set_timer(t, 0, 0);
    set_event(t, PERF_EVENT_IOC_DISABLE);
    return before == CPPROF__TICKS;
}

void
cpprof__thread_note_paused(struct cpprof__thread *t)
{
    uint32_t ticks = CPPROF__TICKS;

    cas_acq_rel(&t->pace, &ticks, (uint32_t)CPPROF__PAUSED_BY_OTHERS);
}

void
cpprof__thread_charge_blocked(struct cpprof__thread *t, uint64_t due,
                              uintptr_t frame)
{
    uint64_t precharged = load_acquire(&t->precharged_ticks);
    uint64_t had = precharged + load_acquire(&t->delivered);

    if (due > had &&
        cas_acq_rel(&t->precharged_ticks, &precharged, precharged + due - had))
        cpprof__sampler_charge((uint32_t)(due - had), frame, t->start);
}

void
cpprof__thread_go_on(struct cpprof__thread *t)
{
    const struct cpprof__sampler *s = &cpprof__sampler;
    uint32_t before = load_acquire(&t->pace);
    uint64_t precharged;

    if (before == CPPROF__TICKS || before == CPPROF__TICKS_AGAIN ||
        !cas_acq_rel(&t->pace, &before, (uint32_t)CPPROF__TICKS_AGAIN))
        return;
    cpprof__thread_charge_blocked(
        t,
        cpprof__ticks_due(t, cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid)),
                          s->period_ns),
        CPPROF__FRAME_BLOCKED);
    /* A scan that reads both in between finds that nothing is missing. */
    precharged = load_acquire(&t->precharged_ticks);
    store_release(&t->delivered, load_relaxed(&t->delivered) + precharged);
    add_relaxed(&t->precharged_ticks, -precharged);
    before = CPPROF__TICKS_AGAIN;
    if (!cas_acq_rel(&t->pace, &before, (uint32_t)CPPROF__TICKS))
        return;
    if (load_relaxed(&t->has_timer))
        set_timer(t,
                  t->base_ns + t->phase_ns +
                      load_relaxed(&t->delivered) * s->period_ns,
                  s->period_ns);
    set_event(t, PERF_EVENT_IOC_ENABLE);
    /* It may have been paused again: a handler of the program did that, or the
     * thread itself while another let it go on. */
    if (load_acquire(&t->pace) == CPPROF__TICKS)
        return;
    if (load_relaxed(&t->has_timer))
        set_timer(t, 0, 0);
    set_event(t, PERF_EVENT_IOC_DISABLE);
}

/* ---- the process's timer ---------------------------------------------- */

/* The program has set the timer since the session began. */
static bool is_the_programs;

bool
cpprof__itimer_may_run(void)
{
    return !load_acquire(&is_the_programs) &&
           !__atomic_load_n(&n_closed, __ATOMIC_SEQ_CST);
}

int
cpprof__itimer_set(uint64_t period_ns)
{
    uint64_t us = period_ns / 1000;
    const struct itimerval when = {
        .it_interval = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)},
        .it_value = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)},
    };

    if (load_acquire(&is_the_programs))
        return 0;
    return syscall(SYS_setitimer, ITIMER_PROF, &when, NULL) ? errno : 0;
}

void
cpprof__itimer_take(void)
{
    store_release(&is_the_programs, false);
    store_release(&cpprof__sampler.uses_itimer, true);
}

void
cpprof__itimer_give_up(void)
{
    if (!load_acquire(&cpprof__sampler.uses_itimer))
        return;
    if (load_relaxed(&cpprof__sampler.itimer_base_ns))
        cpprof__itimer_set(0);
    store_release(&is_the_programs, true);
    store_release(&cpprof__sampler.uses_itimer, false);
}

void
cpprof__itimer_charge_blocked(void)
{
    struct cpprof__sampler *s = &cpprof__sampler;
    uint64_t base = load_relaxed(&s->itimer_base_ns);
    uint64_t before = load_relaxed(&s->itimer_delivered), due;

    if (!base)
        return;
    due = (cpprof__clock_ns(CLOCK_PROCESS_CPUTIME_ID) - base) / s->period_ns;
    if (due > before && cas_acq_rel(&s->itimer_delivered, &before, due))
        cpprof__sampler_charge((uint32_t)(due - before), CPPROF__FRAME_BLOCKED,
                               0);
}

/* Whoever comes last finds it as it should be. */
static void
set_itimer(void)
{
    bool runs;

    do {
        runs = cpprof__itimer_may_run();
        cpprof__itimer_set(runs ? cpprof__sampler.period_ns : 0);
    } while (runs != cpprof__itimer_may_run());
}

static void
count_closed(bool is_closed)
{
    bool was_closed = cpprof__self.is_closed;

    if (is_closed == was_closed)
        return;
    cpprof__self.is_closed = is_closed;
    if (is_closed)
        __atomic_add_fetch(&n_closed, 1, __ATOMIC_SEQ_CST);
    else
        __atomic_sub_fetch(&n_closed, 1, __ATOMIC_SEQ_CST);
    if (!load_relaxed(&cpprof__sampler.itimer_base_ns))
        return;
    if (!is_closed)
        cpprof__itimer_charge_blocked();
    set_itimer();
}

/* ---- of the calling thread -------------------------------------------- */

static struct cpprof__thread *
own_slot(void)
{
    struct cpprof__thread *t = cpprof__self.thread;
    uint32_t generation = load_relaxed(&cpprof__sampler.generation);
    int32_t tid;

    if (!load_acquire(&cpprof__sampler.ring))
        return NULL;
    tid = (int32_t)syscall(SYS_gettid);
    if (!t || load_relaxed(&t->tid) != tid)
        t = cpprof__thread_of_tid(tid);
    return t && load_acquire(&t->session) == generation ? t : NULL;
}

static void
pause_scripts(bool pauses)
{
    void (*set)(bool) = load_acquire(&cpprof__script_pause);

    if (set)
        set(pauses);
}

static bool
pause_own(void)
{
    struct cpprof__thread *t = own_slot();

    bool was_asked = cpprof__questions_stop();

    pause_scripts(true);
    return (t && pause_thread(t, CPPROF__PAUSED)) || was_asked;
}

bool
cpprof__mask_close(void)
{
    int saved_errno = errno;
    bool ticked;

    count_closed(true);
    ticked = pause_own();
    errno = saved_errno;
    return ticked;
}

void
cpprof__mask_take_pending(void)
{
    const struct timespec at_once = {0, 0};
    int saved_errno = errno;
    siginfo_t info;

    while (syscall(SYS_rt_sigtimedwait, &only_ours, &info, &at_once, 8) ==
           CPPROF__SIGNAL) {
        if (cpprof__signal_source(&info) != CPPROF__FROM_OTHERS)
            continue;
        /* The kernel lets only the first thread send what itself has sent. */
        if (syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid),
                    syscall(SYS_gettid), CPPROF__SIGNAL, &info))
            syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid),
                    CPPROF__SIGNAL);
        break;
    }
    errno = saved_errno;
}

void
cpprof__mask_closed(bool late)
{
    int saved_errno = errno;

    if (pause_own() || late)
        cpprof__mask_take_pending();
    errno = saved_errno;
}

void
cpprof__mask_opened(void)
{
    int saved_errno = errno;
    struct cpprof__thread *t;

    count_closed(false);
    pause_scripts(false);
    t = own_slot();
    if (t)
        cpprof__thread_go_on(t);
    errno = saved_errno;
}

/* The process whose threads these are. A child of vfork() has their memory and
 * masks of its own. */
static long process;

bool
cpprof__mask_is_ours(void)
{
    return process == syscall(SYS_getpid);
}

void
cpprof__mask_note_own(void)
{
    uint64_t mask = 0;

    process = syscall(SYS_getpid);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
    count_closed(mask & only_ours);
}

void
cpprof__mask_thread_ended(void)
{
    count_closed(false);
}

void
cpprof__mask_in_child(void)
{
    process = syscall(SYS_getpid);
    n_closed = cpprof__self.is_closed;
}

/* ---- masks that are lent ---------------------------------------------- */

void
cpprof__mask_lend(void)
{
    uint64_t mask = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
    cpprof__self.is_lent = mask & only_ours;
    /* What is pending comes now, and is given back. */
    if (cpprof__self.is_lent)
        syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &only_ours, NULL, 8);
}

void
cpprof__mask_end_loan(void)
{
    int saved_errno = errno;

    if (!cpprof__self.is_lent)
        return;
    cpprof__mask_close();
    cpprof__self.is_lent = false;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &only_ours, NULL, 8);
    cpprof__mask_closed(false);
    errno = saved_errno;
}

/* To the thread if it was for the thread, or to the process. */
bool
cpprof__mask_give_back(const siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    long pid = syscall(SYS_getpid), tid = syscall(SYS_gettid), failed;
    uint64_t mask;

    if (!cpprof__self.is_lent)
        return false;
    cpprof__self.is_lent = false;
    count_closed(true);
    pause_own();
    __builtin_memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    mask |= only_ours;
    __builtin_memcpy(&uc->uc_sigmask, &mask, sizeof mask);
    if (info->si_code == SI_TKILL)
        failed = syscall(SYS_tgkill, pid, tid, CPPROF__SIGNAL);
    else
        failed = syscall(SYS_rt_sigqueueinfo, pid, CPPROF__SIGNAL, info);
    if (failed)
        syscall(SYS_kill, pid, CPPROF__SIGNAL);
    return true;
}
