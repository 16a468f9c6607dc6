/* SPDX-License-Identifier: MIT */
/*
 * Names come from a plug-in, and that from the loader, whose lock may be one of
 * those that threads are stuck by: who asks for it then waits for ever, and has
 * another lock of the loader's meanwhile, which the end of the process needs.
 * So it is not asked for where a thread is stuck in the loader. Otherwise it is
 * loaded once, on a thread of ours, and waited for so long. Once it is there
 * names need nothing of the loader.
 */
#include "arch/clock.h"
#include "collect/encode/names.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/stuck/stuck_text.h"

/* Tunable: what a thread of ours is given to load the plug-in. */
#define LOAD_NS 5000000000u

static struct cpprof__own_lock lock;
static struct cpprof__own_thread loader; /* for good, if it hangs */
static bool is_tried;
static bool has_come;

static bool
load(void *arg)
{
    (void)arg;
    cpprof__names_load();
    return false;
}

static bool
try_to_load(void)
{
    loader = (struct cpprof__own_thread){
        .name = "cpprof-names", .run = load, .flags = CPPROF__OWN_TABLE};
    return cpprof__own_thread_start(&loader) ||
           cpprof__own_thread_join(&loader,
                                   cpprof__now_ns(CLOCK_MONOTONIC) + LOAD_NS);
}

enum cpprof_symbolize
cpprof__stuck_names(const struct cpprof__stuck *stuck,
                    enum cpprof_symbolize wanted)
{
    bool has;

    if (!stuck->n_stuck || wanted == CPPROF_SYMBOLIZE_NONE)
        return CPPROF_SYMBOLIZE_NONE;
    cpprof__own_lock_take(&lock);
    if (!is_tried && !stuck->is_in_loader) {
        is_tried = true;
        has_come = try_to_load();
    }
    has = has_come;
    cpprof__own_lock_give(&lock);
    return has ? wanted : CPPROF_SYMBOLIZE_NONE;
}

void
cpprof__stuck_names_in_child(void)
{
    cpprof__own_lock_in_child(&lock);
    is_tried = has_come; /* that one is the parent's */
}
