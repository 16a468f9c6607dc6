/* SPDX-License-Identifier: MIT */
/*
 * Installs our handler in front of libc's; action.h tells of the signal.
 *
 * libc's sigaction() refuses it, so the kernel is asked. libc installs its own
 * handler with the first thread that is made, and never again, so one is made
 * before if there was none.
 *
 * Invariants: once installed ours stays, so a late signal is recognised and
 * ignored, unless it is removed, and then libc's ignores it; it has libc's
 * restorer and flags, but for SA_ONSTACK once cpprof__alternate_is_left(),
 * whichever comes first.
 */
#include "collect/threads/action.h"

#include "arch/atomic.h"
#include "arch/libc.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/sample/alternate.h"
#include "collect/signal/sample/handler.h"
#include "collect/signal/sample/sampler.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel has it; libc's sigaction() refuses this signal. */
struct kernel_action {
    void (*handler)(int signo, siginfo_t *info, void *context);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

#define BIT(signo) (1ull << ((signo)-1))

static bool is_installed;

const char *
cpprof__action_error(int failed)
{
    return failed == ENOTSUP ? "the program set signal 33, which is libc's, "
                               "back to its default"
                             : strerror(failed);
}

#ifdef __SANITIZE_THREAD__
int
cpprof__action_install(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    ours.sa_sigaction = cpprof__on_signal;
    sigfillset(&ours.sa_mask);
    store_release(&is_installed, true);
    return sigaction(CPPROF__SIGNAL, &ours, NULL) ? errno : 0;
}

void
cpprof__action_remove(void)
{
}
#else
static struct kernel_action libcs;

static int
swap_action(int signo, const struct kernel_action *action,
            struct kernel_action *old)
{
    return syscall(SYS_rt_sigaction, signo, action, old, sizeof old->mask)
               ? errno
               : 0;
}

static bool
is_libcs(const struct kernel_action *action)
{
    uintptr_t handler = (uintptr_t)action->handler;

    return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN &&
           action->flags & SA_SIGINFO;
}

/* One that was installed after ours, and hands on to it: two that stand in
 * front of each other would call each other for ever. */
static bool
is_in_front(const struct kernel_action *action)
{
    void (*behind)(int, siginfo_t *, void *) =
        load_acquire(&cpprof__libc_handler);

    return behind && action->handler != behind;
}

static int
find_libcs(struct kernel_action *now)
{
    int failed = swap_action(CPPROF__SIGNAL, NULL, now);

    if (failed || is_libcs(now))
        return failed;
    cpprof__own_thread_run_new(cpprof__libc_installs_handler, NULL, 0);
    failed = swap_action(CPPROF__SIGNAL, NULL, now);
    return failed || is_libcs(now) ? failed : ENOTSUP;
}

int
cpprof__action_install(void)
{
    struct kernel_action ours;
    int failed = find_libcs(&ours);

    if (failed || ours.handler == cpprof__on_signal || is_in_front(&ours))
        return failed;
    libcs = ours;
    store_release(&cpprof__libc_handler, ours.handler);
    ours.handler = cpprof__on_signal;
    ours.flags |= SA_SIGINFO | SA_RESTART | SA_ONSTACK; /* and its restorer */
    /* That of a thread's cancellation, too, which would unwind out of the
     * handler; but not SIGSYS (runtime/own_lock.h). */
    ours.mask = ~BIT(SIGSYS);
    failed = swap_action(CPPROF__SIGNAL, &ours, NULL);
    if (!failed && cpprof__alternate_is_left())
        cpprof__alternate_leave();
    if (!failed)
        store_release(&is_installed, true);
    return failed;
}

void
cpprof__action_remove(void)
{
    struct kernel_action now;

    if (load_acquire(&is_installed) &&
        !swap_action(CPPROF__SIGNAL, NULL, &now) &&
        now.handler == cpprof__on_signal)
        swap_action(CPPROF__SIGNAL, &libcs, NULL);
    store_release(&is_installed, false);
}

#endif

void
cpprof__action_check(void)
{
    if (load_acquire(&is_installed))
        cpprof__action_install();
}
