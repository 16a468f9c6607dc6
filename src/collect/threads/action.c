/* SPDX-License-Identifier: MIT */
/*
 * The disposition of SIGPROF: our handler is installed in the kernel, and the
 * program's action is kept in a variable that sigaction() and signal() read
 * and change.
 *
 * Protocol: the handler reads the program's action without a lock. A writer
 * makes the version odd, writes, and makes it even, with signals blocked, so a
 * handler of its own thread never waits for it; a reader repeats until the
 * version is even and unchanged. `lock` orders the program's calls; a handler
 * writes too, when a signal with SA_RESETHAND has come.
 *
 * Invariants: once installed, our handler stays; a vfork child, which shares
 * our memory but not our dispositions, is recognized by installed_pid.
 */
#include "collect/threads/action.h"

#include "arch/atomic.h"
#include "collect/runtime/real.h"
#include "collect/signal/sample/handler.h"
#include "collect/signal/sample/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int32_t installed_pid; /* the process that has our handler; 0: none. A
                               * vfork child shares this memory and has a
                               * disposition of its own */

/* The handler reads the action without a lock; no signal may come between the
 * two changes of the version, or it would wait for its own thread. */
static void
set_user_action(const struct sigaction *action)
{
    struct cpprof__user_action *u = &cpprof__user_action;
    sigset_t all, saved;
    uint32_t version;

    sigfillset(&all);
    cpprof__real_sigmask(SIG_SETMASK, &all, &saved);
    do /* a handler of another thread may be at it (SA_RESETHAND) */
        version = load_relaxed(&u->version) & ~1u;
    while (!cas_acq_rel(&u->version, &version, version + 1));
    __atomic_thread_fence(__ATOMIC_RELEASE);
    u->action = *action;
    store_release(&u->version, version + 2);
    cpprof__real_sigmask(SIG_SETMASK, &saved, NULL);
}

static struct sigaction
our_action(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    ours.sa_sigaction = cpprof__on_signal;
    /* All of them: sigfillset leaves out the signal of thread cancellation,
     * which would unwind out of the handler. */
    memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    return ours;
}

static int
install(void)
{
    struct sigaction ours = our_action(), old;

    if (cpprof__real_sigaction(CPPROF__SIGNAL, &ours, &old))
        return errno;
    if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != cpprof__on_signal)
        set_user_action(&old);
    store_release(&installed_pid, (int32_t)getpid());
    return 0;
}

int
cpprof__action_install(void)
{
    int failed;

    pthread_mutex_lock(&lock);
    failed = install();
    pthread_mutex_unlock(&lock);
    return failed;
}

bool
cpprof__action_concerns(int signo)
{
    return signo == CPPROF__SIGNAL;
}

static bool
is_installed(void)
{
    int32_t pid = load_acquire(&installed_pid);

    return pid && pid == (int32_t)getpid();
}

bool
cpprof__action_is_ours(void)
{
    return is_installed();
}

int
cpprof__action_swap(int signo, const struct sigaction *action,
                    struct sigaction *old)
{
    struct sigaction before;
    sigset_t all, saved;

    if (signo != CPPROF__SIGNAL || !is_installed())
        return cpprof__real_sigaction(signo, action, old);
    /* A handler may call sigaction too. */
    sigfillset(&all);
    cpprof__real_sigmask(SIG_SETMASK, &all, &saved);
    pthread_mutex_lock(&lock);
    before = cpprof__user_action.action;
    if (action)
        set_user_action(action);
    pthread_mutex_unlock(&lock);
    cpprof__real_sigmask(SIG_SETMASK, &saved, NULL);
    if (old)
        *old = before;
    return 0;
}

void
cpprof__action_check(void)
{
    struct sigaction now;

    if (is_installed() && !cpprof__real_sigaction(CPPROF__SIGNAL, NULL, &now) &&
        (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != cpprof__on_signal))
        cpprof__action_install();
}

static bool
is_ignored(void)
{
    return load_acquire(&installed_pid) &&
           cpprof__user_action.action.sa_handler == SIG_IGN;
}

void
cpprof__action_exec_begin(void)
{
    struct sigaction ignore = {0};

    ignore.sa_handler = SIG_IGN;
    if (is_ignored())
        cpprof__real_sigaction(CPPROF__SIGNAL, &ignore, NULL);
}

void
cpprof__action_exec_failed(void)
{
    struct sigaction ours = our_action();

    if (is_ignored())
        cpprof__real_sigaction(CPPROF__SIGNAL, &ours, NULL);
}

void
cpprof__action_in_child(void)
{
    struct cpprof__user_action *u = &cpprof__user_action;

    if (installed_pid)
        installed_pid = (int32_t)getpid();
    /* Another thread may have been in the middle of a change. */
    if (u->version & 1)
        store_release(&u->version, u->version + 1);
    pthread_mutex_init(&lock, NULL);
}
