/* SPDX-License-Identifier: MIT */
/*
 * Names come from a plug-in, and that from the loader, whose lock may be one of
 * those that threads are stuck by: who asks for it then waits for ever, and has
 * another lock of the loader's meanwhile, which the end of the process needs.
 * So it is not asked for where a thread is stuck in the loader. Otherwise it is
 * loaded once, on a thread of ours, and waited for so long; later profiles look
 * whether it has come meanwhile. Once it is there names need nothing of the
 * loader.
 */
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/encode/names.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/stuck/stuck_text.h"

/* Tunable: what a thread of ours is given to load the plug-in. */
#define LOAD_NS 5000000000u

static struct cpprof__own_lock lock CPPROF__AT_START;
static struct cpprof__own_thread loader; /* for good, if it hangs */
static bool has_begun CPPROF__AT_START;
static bool has_come;

static bool
load(void *arg)
{
    (void)arg;
    cpprof__names_load();
    return false;
}

static bool
wait_for_names(bool may_begin)
{
    uint64_t until_ns = 0;

    if (has_come)
        return true;
    if (!has_begun && may_begin) {
        loader = (struct cpprof__own_thread){
            .name = "cpprof-names", .run = load, .flags = CPPROF__OWN_TABLE};
        has_begun = !cpprof__own_thread_start(&loader);
        until_ns = cpprof__now_ns(CLOCK_MONOTONIC) + LOAD_NS;
    }
    return has_begun && cpprof__own_thread_join(&loader, until_ns);
}

enum cpprof_symbolize
cpprof__stuck_names(const struct cpprof__stuck *stuck,
                    enum cpprof_symbolize wanted)
{
    bool has;

    if (!stuck->n_stuck || wanted == CPPROF_SYMBOLIZE_NONE)
        return CPPROF_SYMBOLIZE_NONE;
    cpprof__own_lock_take(&lock);
    has = has_come = wait_for_names(!stuck->is_in_loader);
    cpprof__own_lock_give(&lock);
    return has ? wanted : CPPROF_SYMBOLIZE_NONE;
}

CPPROF__FIRST_STEP void
cpprof__stuck_names_in_child(void)
{
    cpprof__own_lock_in_child(&lock);
    has_begun = has_come; /* that one is the parent's */
}
