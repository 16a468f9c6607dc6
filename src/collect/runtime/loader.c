/* SPDX-License-Identifier: MIT */
/*
 * Asks for the loader's list of modules where that is allowed: loader.h tells
 * why a fork waits for who asks, and who does not ask.
 */
#include "collect/runtime/loader.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/runtime/proc.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/unwind.h"

#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

/* Tunables: 0.2 s, as the kernel sleeps for twice as long. A thread looks at
 * the list for microseconds, and may have no processor for tens of milliseconds
 * meanwhile. One that takes longer waits for the loader's lock itself. */
#define LOOKS_MAX 2000u
#define LOOK_NS   50000

static uint32_t n_asking CPPROF__AT_START;
static uint32_t n_forks CPPROF__AT_START;
/* Made by fork, with the parent's modules. */
static bool is_child CPPROF__AT_START;

/* False: not now. */
static bool
begin_asking(void)
{
    if (load_acquire(&is_child))
        return false;
    __atomic_fetch_add(&n_asking, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&n_forks, __ATOMIC_SEQ_CST))
        return true;
    __atomic_fetch_sub(&n_asking, 1, __ATOMIC_SEQ_CST);
    return false;
}

static void
end_asking(void)
{
    __atomic_fetch_sub(&n_asking, 1, __ATOMIC_SEQ_CST);
}

void
cpprof__loader_refresh(void)
{
    if (!begin_asking())
        return;
    cpprof__unwind_refresh_modules();
    end_asking();
    cpprof__proc_note_modules();
}

/* By the process that did so first: a child that was made without a call of
 * fork() knows nothing of the lock either. */
CPPROF__FIRST_STEP void
cpprof__loader_list(void)
{
    static int32_t lister;
    int32_t nobody = 0, me;

    if (!cpprof__module_needs_table())
        return;
    me = (int32_t)getpid();
    if (cas_acq_rel(&lister, &nobody, me) || nobody == me)
        cpprof__loader_refresh();
}

bool
cpprof__loader_visit(int (*each)(struct dl_phdr_info *info, size_t n,
                                 void *arg),
                     void *arg)
{
    if (!begin_asking())
        return false;
    dl_iterate_phdr(each, arg);
    end_asking();
    return true;
}

static int
take_first(struct dl_phdr_info *info, size_t n, void *arg)
{
    (void)info;
    (void)n;
    (void)arg;
    return 1;
}

bool
cpprof__loader_may_be_asked(void)
{
    return !load_acquire(&is_child);
}

/* Modules come and go under one lock, and their list has another. */
void
cpprof__loader_wait(void)
{
    dlsym(RTLD_DEFAULT, "malloc");
    dl_iterate_phdr(take_first, NULL);
    store_release(&is_child, false);
}

void
cpprof__loader_before_fork(void)
{
    uint32_t i;

    __atomic_fetch_add(&n_forks, 1, __ATOMIC_SEQ_CST);
    for (i = 0; __atomic_load_n(&n_asking, __ATOMIC_SEQ_CST) && i < LOOKS_MAX;
         i++)
        cpprof__sleep_ns(LOOK_NS);
}

void
cpprof__loader_after_fork(void)
{
    __atomic_fetch_sub(&n_forks, 1, __ATOMIC_SEQ_CST);
}

CPPROF__FIRST_STEP void
cpprof__loader_in_child(void)
{
    is_child = true;
    n_asking = n_forks = 0;
    cpprof__proc_in_child();
}
