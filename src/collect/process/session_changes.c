/* SPDX-License-Identifier: MIT */
/*
 * What a CPU session does when the process changes: modules are unloaded, it
 * forks, it execs.
 */
#include "collect/cpu/session.h"
#include "collect/cpu/session_internal.h"

#include "arch/atomic.h"
#include "collect/capture/captures.h"
#include "collect/process/late.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/real.h"
#include "collect/signal/sample/pause.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static struct cpprof__session_current *const current = &cpprof__session_current;
static __thread bool blocked_for_fork, unblocks_after_fork;

/* ---- the loader ------------------------------------------------------- */

/*
 * The session cannot end meanwhile, because stop clears the pointer to it under
 * the same lock first. The drainer is not waited for: it may be about to load
 * the symbolizer, and the caller may hold the loader's lock.
 */
void
cpprof__session_before_unload(void)
{
    struct cpprof__session *s;

    cpprof__own_lock_take(&current->lock);
    s = current->session;
    if (s && cpprof__own_lock_take_until(&s->drain_lock, 0)) {
        cpprof__session_drain_locked(s);
        cpprof__own_lock_give(&s->drain_lock);
    }
    cpprof__own_lock_give(&current->lock);
}

void
cpprof__session_after_unload(void)
{
    cpprof__unwind_forget();
    cpprof__own_lock_take(&current->lock);
    if (current->session)
        store_release(&current->session->unloaded, true);
    cpprof__own_lock_give(&current->lock);
}

/* ---- fork and exec ---------------------------------------------------- */

static void
set_blocked(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, CPPROF__SIGNAL);
    cpprof__real_sigmask(how, &set, NULL);
}

/* The signal is blocked meanwhile: fork restarts from the beginning for each
 * one that comes, which for a large process never ends. */
void
cpprof__session_before_fork(void)
{
    sigset_t set, before;

    blocked_for_fork = false;
    if (!cpprof__action_is_ours())
        return;
    cpprof__loader_before_fork();
    sigemptyset(&set);
    sigaddset(&set, CPPROF__SIGNAL);
    cpprof__real_sigmask(SIG_BLOCK, &set, &before);
    blocked_for_fork = true;
    unblocks_after_fork = !sigismember(&before, CPPROF__SIGNAL);
}

static void
unblock(void)
{
    if (blocked_for_fork && unblocks_after_fork)
        set_blocked(SIG_UNBLOCK);
}

void
cpprof__session_after_fork(void)
{
    if (blocked_for_fork)
        cpprof__loader_after_fork();
    unblock();
}

/* The child drops the parent's session: its thread is not here, and its memory
 * may be half-changed. */
void
cpprof__session_in_child(void)
{
    cpprof__sampler.ring = NULL;
    cpprof__sampler.n_inside = 0;
    cpprof__sampler.itimer_base_ns = 0;
    cpprof__threads_in_child();
    cpprof__action_in_child();
    if (current->session)
        cpprof__spool_free(&current->session->spool, true);
    current->session = NULL;
    cpprof__own_lock_in_child(&current->lock);
    cpprof__life_in_child(&cpprof__cpu_life);
    cpprof__captures_in_child();
    cpprof__loader_in_child();
    unblock();
}

void
cpprof__session_exec_begin(void)
{
    int saved_errno = errno;

    cpprof__late_hold();
    if (cpprof__session_is_ours())
        cpprof__threads_suspend();
    if (cpprof__self.is_lent) /* the new image gets the mask that it sees */
        set_blocked(SIG_BLOCK);
    if (cpprof__action_is_ours()) {
        /* What is pending, because the program blocks it, would survive the
         * exec and end the new image. */
        cpprof__mask_take_pending();
    }
    cpprof__action_exec_begin();
    errno = saved_errno;
}

void
cpprof__session_exec_failed(void)
{
    int saved_errno = errno;

    cpprof__action_exec_failed();
    if (cpprof__self.is_lent)
        set_blocked(SIG_UNBLOCK);
    if (cpprof__session_is_ours())
        cpprof__threads_resume();
    cpprof__late_release();
    errno = saved_errno;
}
