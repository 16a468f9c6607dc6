/* SPDX-License-Identifier: MIT */
/*
 * A session while the process changes under it: modules that are unloaded,
 * fork, exec.
 */
#include "collect/cpu/session_internal.h"

#include "arch/atomic.h"
#include "collect/capture/captures.h"
#include "collect/dump/dump.h"
#include "collect/runtime/loader.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct cpprof__session_life *const life = &cpprof__session_life;
static __thread sigset_t mask_before_fork;

/* ---- the loader ------------------------------------------------------- */

/*
 * The session cannot end between the look at the state and the work: stop
 * changes the state under the lock first. The drainer is not waited for: it may
 * be about to load the symbolizer, and the caller may hold the loader's lock.
 */
void
cpprof__session_before_unload(void)
{
    pthread_mutex_lock(&life->lock);
    if (life->state == CPPROF__SESSION_RUNNING &&
        !pthread_mutex_trylock(&life->session->drain_lock)) {
        cpprof__session_drain_locked(life->session);
        pthread_mutex_unlock(&life->session->drain_lock);
    }
    pthread_mutex_unlock(&life->lock);
}

void
cpprof__session_after_unload(void)
{
    cpprof__unwind_forget();
    pthread_mutex_lock(&life->lock);
    if (life->state == CPPROF__SESSION_RUNNING)
        store_release(&life->session->unloaded, true);
    pthread_mutex_unlock(&life->lock);
}

/* ---- fork and exec ---------------------------------------------------- */

/* The signal is blocked meanwhile: fork restarts from the beginning for each
 * one that comes, which for a large process never ends. */
void
cpprof__session_fork_prepare(void)
{
    sigset_t set;

    cpprof__loader_fork_prepare();
    pthread_mutex_lock(&life->lock);
    cpprof__threads_fork_prepare();
    sigemptyset(&set);
    sigaddset(&set, CPPROF__SIGNAL);
    pthread_sigmask(SIG_BLOCK, &set, &mask_before_fork);
}

void
cpprof__session_fork_parent(void)
{
    pthread_sigmask(SIG_SETMASK, &mask_before_fork, NULL);
    cpprof__threads_fork_parent();
    pthread_mutex_unlock(&life->lock);
    cpprof__loader_fork_parent();
}

/* The child lets go of the parent's session: its thread is not here, its
 * memory may have been caught in the middle of a change. */
void
cpprof__session_fork_child(void)
{
    cpprof__sampler.ring = NULL;
    cpprof__sampler.n_inside = 0;
    cpprof__sampler.itimer_base_ns = 0;
    cpprof__threads_fork_child();
    cpprof__action_fork_child();
    if (life->session)
        cpprof__spool_free(&life->session->spool, true);
    life->session = NULL;
    life->state = life->default_profile = CPPROF__SESSION_IDLE;
    cpprof__captures_fork_child();
    pthread_mutex_init(&life->lock, NULL);
    pthread_mutex_init(&life->change, NULL);
    cpprof__loader_fork_child();
    pthread_sigmask(SIG_SETMASK, &mask_before_fork, NULL);
}

/* A signal that is pending because the program blocks it would outlive the
 * exec and end the new image. One that is not ours is put back. */
static void
take_pending(void)
{
    const struct timespec at_once = {0, 0};
    siginfo_t info;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, CPPROF__SIGNAL);
    if (sigtimedwait(&set, &info, &at_once) != CPPROF__SIGNAL)
        return;
    if (info.si_code == SI_USER || info.si_code == SI_TKILL ||
        info.si_code == SI_QUEUE)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid),
                CPPROF__SIGNAL, &info);
}

void
cpprof__session_exec_begin(void)
{
    int saved_errno = errno;

    if (cpprof__session_is_ours())
        cpprof__threads_suspend();
    if (cpprof__action_is_ours()) {
        cpprof__dump_exec_begin();
        take_pending();
    }
    cpprof__action_exec_begin();
    errno = saved_errno;
}

void
cpprof__session_exec_failed(void)
{
    int saved_errno = errno;

    cpprof__action_exec_failed();
    if (cpprof__action_is_ours())
        cpprof__dump_exec_failed();
    if (cpprof__session_is_ours())
        cpprof__threads_resume();
    errno = saved_errno;
}
