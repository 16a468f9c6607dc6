/* SPDX-License-Identifier: MIT */
#include "collect/action.h"

#include "arch/atomic.h"
#include "collect/real.h"
#include "collect/signal/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool installed;

/* The handler reads the action without a lock; no signal may come between the
 * two changes of the version, or it would wait for its own thread. */
static void
set_user_action(const struct sigaction *action)
{
    struct cpprof__user_action *u = &cpprof__user_action;
    sigset_t all, saved;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    store_relaxed(&u->version, u->version + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    u->action = *action;
    store_release(&u->version, u->version + 1);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

static int
install(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigaction old;

    ours.sa_sigaction = cpprof__on_signal;
    sigfillset(&ours.sa_mask);
    if (cpprof__real_sigaction(CPPROF__SIGNAL, &ours, &old))
        return errno;
    if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != cpprof__on_signal)
        set_user_action(&old);
    store_release(&installed, true);
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

int
cpprof__action_swap(int signo, const struct sigaction *action,
                    struct sigaction *old)
{
    struct sigaction before;

    if (signo != CPPROF__SIGNAL || !load_acquire(&installed))
        return cpprof__real_sigaction(signo, action, old);
    pthread_mutex_lock(&lock);
    before = cpprof__user_action.action;
    if (action)
        set_user_action(action);
    if (old)
        *old = before;
    pthread_mutex_unlock(&lock);
    return 0;
}
