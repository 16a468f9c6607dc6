/* SPDX-License-Identifier: MIT */
/*
 * perf_event_open with the CPU clock of each thread: a timer interrupt of its
 * own, exact at any rate, delivered as a signal by the descriptor (F_SETSIG,
 * F_SETOWN_EX) without a buffer. It stops with each signal until the handler
 * lets it go on, so there is never more than one in the queue. Containers
 * refuse it. Descriptors are moved high, out of the way of programs that count
 * theirs, and are never touched before it is clear that they are still ours.
 *
 * Source: perf_event_open(2), fcntl(2).
 */
#include "arch/atomic.h"
#include "base/descriptor.h"
#include "base/status.h"
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
#include <unistd.h>

/* No event is asked to fire sooner than this: its interrupt costs tens of
 * microseconds on a virtual machine, and one that takes longer than its period
 * leaves the processor no time for anything else, not even to stop it. */
#define PERIOD_NS_MIN 100000u

/* A limit on queued signals has to be above that. */
#define QUEUE_MIN 1024u

static bool user_only;
static bool is_refused;

bool
cpprof__perf_is_user_only(void)
{
    return user_only;
}

static int
open_event(int32_t tid, uint64_t period_ns, bool exclude_kernel)
{
    struct perf_event_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = period_ns;
    attr.disabled = 1;
    attr.exclude_kernel = exclude_kernel;
    attr.exclude_hv = 1;
    attr.wakeup_events = 1;
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
                        PERF_FLAG_FD_CLOEXEC);
}

void
cpprof__perf_refuse(void)
{
    store_release(&is_refused, true);
}

static bool
has_queue(void)
{
    struct rlimit limit;

    return !load_acquire(&is_refused) &&
           !getrlimit(RLIMIT_SIGPENDING, &limit) && limit.rlim_cur > QUEUE_MIN;
}

/* Time in the kernel is sampled where that is allowed. */
static enum cpprof_status
perf_open(uint64_t period_ns, struct cpprof_error *error)
{
    int fd;

    store_release(&is_refused,
                  cpprof__proc_signals_queued() > CPPROF__PERF_QUEUED_MAX);
    if (!has_queue())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "too few signals can be queued (ulimit -i)");
    fd = open_event(0, period_ns, false);
    user_only = fd < 0;
    if (fd < 0)
        fd = open_event(0, period_ns, true);
    if (fd < 0)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, errno,
                            "perf_event_open: %s", strerror(errno));
    close(fd);
    return CPPROF_OK;
}

static int
deliver_to(int fd, const struct cpprof__thread *t)
{
    struct f_owner_ex owner = {F_OWNER_TID, t->tid};

    if (fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) ||
        fcntl(fd, F_SETSIG, CPPROF__SIGNAL) || fcntl(fd, F_SETOWN_EX, &owner) ||
        ioctl(fd, PERF_EVENT_IOC_REFRESH, 1))
        return errno;
    return 0;
}

static int
perf_arm(struct cpprof__thread *t, uint64_t period_ns)
{
    uint64_t used = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
    uint64_t first = t->base_ns + t->phase_ns;
    int failed, fd;

    (void)period_ns; /* the handler sets it with the first tick */
    if (!has_queue())
        return EAGAIN;
    first = first > used + PERIOD_NS_MIN ? first - used : PERIOD_NS_MIN;
    fd = open_event(t->tid, first, user_only);
    if (fd < 0)
        return errno;
    fd = cpprof__descriptor_high(fd);
    if (fd < 0)
        return errno;
    store_relaxed(&t->perf_fd, fd);
    store_relaxed(&cpprof__sampler.uses_perf, true);
    failed = deliver_to(fd, t);
    if (failed) {
        close(fd);
        store_relaxed(&t->perf_fd, -1);
    }
    return failed;
}

/* A descriptor that sends our signal to this thread is ours. */
static bool
perf_is_armed(const struct cpprof__thread *t)
{
    struct f_owner_ex owner;

    return t->perf_fd >= 0 && fcntl(t->perf_fd, F_GETSIG) == CPPROF__SIGNAL &&
           !fcntl(t->perf_fd, F_GETOWN_EX, &owner) &&
           owner.type == F_OWNER_TID && owner.pid == t->tid;
}

static void
perf_disarm(struct cpprof__thread *t)
{
    /* A forked child may hold a copy, which would keep the event alive. */
    if (perf_is_armed(t))
        ioctl(t->perf_fd, PERF_EVENT_IOC_DISABLE, 0);
    cpprof__perf_forget(t);
}

void
cpprof__perf_forget(struct cpprof__thread *t)
{
    if (perf_is_armed(t))
        close(t->perf_fd);
    store_relaxed(&t->perf_fd, -1);
}

void
cpprof__perf_end_phase(const struct cpprof__thread *t, uint64_t period_ns)
{
    if (perf_is_armed(t))
        ioctl(t->perf_fd, PERF_EVENT_IOC_PERIOD, &period_ns);
}

/* A tick that comes within the first call is handled when that returns, and the
 * handler lets the event go on. */
void
cpprof__perf_pause(const struct cpprof__thread *t)
{
    if (!perf_is_armed(t))
        return;
    ioctl(t->perf_fd, PERF_EVENT_IOC_DISABLE, 0);
    ioctl(t->perf_fd, PERF_EVENT_IOC_DISABLE, 0);
}

void
cpprof__perf_go_on(const struct cpprof__thread *t)
{
    if (perf_is_armed(t))
        ioctl(t->perf_fd, PERF_EVENT_IOC_REFRESH, 1);
}

static void
perf_close(void)
{
}

const struct cpprof__engine cpprof__engine_perf = {
    "perf", perf_open, perf_arm, perf_is_armed, perf_disarm, perf_close};
