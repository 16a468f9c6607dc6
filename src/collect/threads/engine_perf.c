/* SPDX-License-Identifier: MIT */
/*
 * perf_event_open with the CPU clock of each thread: a timer interrupt of its
 * own, exact at any rate, delivered as a signal by the descriptor (F_SETSIG,
 * F_SETOWN_EX) without a buffer. Containers refuse it.
 *
 * Events tick in user mode only, so the thread takes a signal before its next
 * instruction. One that came in a system call would cut its sleep short, and
 * in an exec it would end the new image. For the time in the kernel the thread
 * has a timer, too (signal/sample/handler.c). A kernel that sends signals of
 * events by a thread (PREEMPT_RT) may be late, so there they are refused.
 *
 * Descriptors are in the table of the drainer, which alone opens and changes
 * events; what it forgets is closed with its table. No handler can let an event
 * go on, so each has a credit of signals, which the drainer renews: the handler
 * wakes it when half is used. Without credit an event stops, and the next tick
 * counts what was missed. So there is a bound to what is in the queue.
 *
 * Source: perf_event_open(2), fcntl(2).
 */
#include "arch/atomic.h"
#include "arch/place.h"
#include "base/status.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* No event is asked to fire sooner than this: its interrupt costs tens of
 * microseconds on a virtual machine, and one that takes longer than its period
 * leaves the processor no time for anything else, not even to stop it. */
#define PERIOD_NS_MIN 100000u

/* A limit on queued signals has to be above that. */
#define QUEUE_MIN 1024u

/* Tunable: the signals of an event that may be in the queue at once: those of
 * this time, which the drainer has to come. */
#define CREDIT_NS  200000000u
#define CREDIT_MIN 2u
#define CREDIT_MAX 512u

static bool events_are_refused; /* by the limit on queued signals */

/* Of the drainer. */
/* Its tid; 0: no thread may open events. */
static int32_t owner CPPROF__AT_START;
static uint32_t n_events;

/* Where it is. A child of vfork() has the same memory, and limits of its own.
 */
static int32_t process CPPROF__AT_START;

static int
open_event(int32_t tid, uint64_t period_ns)
{
    struct perf_event_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = period_ns;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.wakeup_events = 1;
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
                        PERF_FLAG_FD_CLOEXEC);
}

void
cpprof__perf_refuse(void)
{
    store_release(&events_are_refused, true);
}

static bool
is_refused(void)
{
    return load_acquire(&events_are_refused) || cpprof__sampler_is_refused();
}

static bool
has_queue(void)
{
    struct rlimit limit;

    return !is_refused() && !getrlimit(RLIMIT_SIGPENDING, &limit) &&
           limit.rlim_cur > QUEUE_MIN;
}

static enum cpprof_status
perf_open(uint64_t period_ns, struct cpprof_error *error)
{
    struct utsname system;
    int fd;

    if (!uname(&system) && strstr(system.version, "PREEMPT_RT"))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "signals of perf events come late (PREEMPT_RT)");
    store_release(&events_are_refused,
                  cpprof__proc_signals_queued() > CPPROF__PERF_QUEUED_MAX);
    if (!has_queue())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "too few signals can be queued (ulimit -i)");
    fd = open_event(0, period_ns);
    if (fd < 0)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, errno,
                            "perf_event_open: %s", strerror(errno));
    close(fd);
    return CPPROF_OK;
}

/* ---- of the thread that opens them -------------------------------------- */

static bool
is_owner(void)
{
    return load_relaxed(&owner) == (int32_t)syscall(SYS_gettid);
}

bool
cpprof__perf_is_here(void)
{
    return load_relaxed(&process) == (int32_t)getpid();
}

void
cpprof__perf_own(void)
{
    bool has_table = cpprof__own_thread_has_table();

    n_events = 0;
    store_relaxed(&process, (int32_t)getpid());
    store_relaxed(&owner, has_table ? (int32_t)syscall(SYS_gettid) : 0);
}

static uint32_t
credit_of(uint64_t period_ns)
{
    uint64_t n = CREDIT_NS / period_ns;

    return n < CREDIT_MIN   ? CREDIT_MIN
           : n > CREDIT_MAX ? CREDIT_MAX
                            : (uint32_t)n;
}

/* All that events may send at once is a quarter of what may be queued. */
static bool
has_room(uint64_t period_ns)
{
    struct rlimit limit;

    return has_queue() && !getrlimit(RLIMIT_SIGPENDING, &limit) &&
           (n_events + 1) * (uint64_t)credit_of(period_ns) <=
               limit.rlim_cur / 4;
}

static bool
delivers_to(int fd, const struct cpprof__thread *t)
{
    struct f_owner_ex owner_of_fd = {F_OWNER_TID, t->tid};

    return !fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) &&
           !fcntl(fd, F_SETSIG, CPPROF__SIGNAL) &&
           !fcntl(fd, F_SETOWN_EX, &owner_of_fd);
}

static void
grant(struct cpprof__thread *t, uint32_t n)
{
    uint32_t granted = load_relaxed(&t->perf_granted);

    if (ioctl(t->perf_fd, PERF_EVENT_IOC_REFRESH, n))
        return;
    store_relaxed(&t->perf_granted, granted + n);
    store_relaxed(&t->perf_wakes_at, granted + n - n / 2);
}

/* An event that does not run yet, whose first tick is the thread's next. */
static void
perf_arm(struct cpprof__thread *t, uint64_t period_ns)
{
    uint64_t used = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
    uint64_t due = cpprof__ticks_due(t, used, period_ns);
    uint64_t next = t->base_ns + t->phase_ns + due * period_ns;
    int fd;

    if (!is_owner() || !has_room(period_ns))
        return;
    next = next > used + PERIOD_NS_MIN ? next - used : PERIOD_NS_MIN;
    fd = open_event(t->tid, next);
    if (fd < 0)
        return;
    if (!delivers_to(fd, t)) {
        close(fd);
        return;
    }
    n_events++;
    store_relaxed(&t->perf_granted, 0u);
    store_relaxed(&t->perf_signals, 0u);
    t->perf_is_over = false;
    store_relaxed(&cpprof__sampler.uses_perf, true);
    store_release(&t->perf_fd, fd);
}

void
cpprof__perf_disarm(struct cpprof__thread *t)
{
    if (t->perf_fd < 0)
        return;
    t->perf_is_over = true;
    if (!is_owner())
        return;
    close(t->perf_fd);
    n_events--;
    store_relaxed(&t->perf_fd, -1);
}

/* The first tick comes after a random part of the period; from then on the
 * period holds. */
static void
renew_credit(struct cpprof__thread *t, uint64_t period_ns)
{
    uint32_t credit = credit_of(period_ns);
    uint32_t n = load_relaxed(&t->perf_signals);

    if (!t->perf_granted) {
        grant(t, 1);
        return;
    }
    if (t->perf_granted == 1 && n)
        ioctl(t->perf_fd, PERF_EVENT_IOC_PERIOD, &period_ns);
    if (n >= t->perf_wakes_at)
        grant(t, credit - (t->perf_granted - n));
}

CPPROF__FIRST_STEP void
cpprof__perf_in_child(void)
{
    owner = process = 0;
}

void
cpprof__perf_tend(struct cpprof__thread *t, uint64_t period_ns)
{
    if (t->perf_fd >= 0 && (t->perf_is_over || is_refused()))
        cpprof__perf_disarm(t);
    if (t->perf_fd < 0 && t->tid > 0)
        perf_arm(t, period_ns);
    if (t->perf_fd >= 0)
        renew_credit(t, period_ns);
}

/* One that was stopped by its last signal while it was let go on. */
void
cpprof__perf_push(struct cpprof__thread *t, uint64_t period_ns)
{
    uint32_t left = t->perf_granted - load_relaxed(&t->perf_signals);

    if (is_owner() && t->perf_fd >= 0 && !t->perf_is_over &&
        t->perf_granted > 1 && left < credit_of(period_ns))
        grant(t, 1);
}

const struct cpprof__engine cpprof__engine_perf = {"perf", perf_open};
