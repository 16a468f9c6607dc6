/* SPDX-License-Identifier: MIT */
/*
 * What a CPU session does when the process changes: modules are unloaded, it
 * forks.
 */
#include "collect/cpu/session.h"
#include "collect/cpu/session_internal.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "collect/capture/captures.h"
#include "collect/process/late.h"
#include "collect/runtime/loader.h"
#include "collect/signal/sample/sampler.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static struct cpprof__session_current *const current = &cpprof__session_current;

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

/* ---- fork --------------------------------------------------------- */

/* The child drops the parent's session: its thread is not here, and its memory
 * may be half-changed. */
CPPROF__FIRST_STEP void
cpprof__session_in_child(void)
{
    cpprof__sampler.ring = NULL;
    cpprof__sampler.n_inside = 0;
    cpprof__threads_in_child();
    if (current->session)
        cpprof__spool_in_child(&current->session->spool);
    current->session = NULL;
    cpprof__own_lock_in_child(&current->lock);
    cpprof__life_in_child(&cpprof__cpu_life);
    cpprof__captures_in_child();
    cpprof__loader_in_child();
}
