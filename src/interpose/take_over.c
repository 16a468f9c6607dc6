/* SPDX-License-Identifier: MIT */
/*
 * The table of names (collect/runtime/real.h) with what each of them does here,
 * and the switching of groups.
 *
 * Invariant: a pointer leads to a function that can be called at any time. It
 * is set after the next definition was found.
 */
#include "interpose/take_over.h"

#include "arch/place.h"

#include <stdlib.h>

/* All names were found, and all entries set. */
static bool is_done CPPROF__AT_START;
static bool is_on[CPPROF__N_GROUPS] CPPROF__AT_START;
static bool was_on[CPPROF__N_GROUPS] CPPROF__AT_START; /* once */

void *cpprof__entries[CPPROF__N_NAMES] CPPROF__AT_START;

static const uint8_t groups[] = {
#define GROUP(group, name) CPPROF__##group,
    CPPROF__NAMES(GROUP)};

CPPROF__FIRST_STEP static void *
hook(enum cpprof__name name, bool on)
{
    switch (name) {
#define HOOK_OF(group, name)                                                   \
    case CPPROF__NAME_##name:                                                  \
        return name##_hook(on);
        CPPROF__NAMES(HOOK_OF)
    default:
        return NULL;
    }
}

/* The program called what cannot be carried out. */
static void
missing(void)
{
    abort();
}

CPPROF__FIRST_STEP static void
set_to(enum cpprof__name name, bool on)
{
    void *to = load_relaxed(&cpprof__next[name]);

    if (to && on)
        to = hook(name, true);
    __atomic_store_n(&cpprof__entries[name], to, __ATOMIC_SEQ_CST);
}

CPPROF__FIRST_STEP static void
set_entry(enum cpprof__name name)
{
    bool *group = &is_on[groups[name]], on;

    do {
        on = __atomic_load_n(group, __ATOMIC_SEQ_CST);
        set_to(name, on);
    } while (on != __atomic_load_n(group, __ATOMIC_SEQ_CST));
}

/* What nobody defines is what it is otherwise. */
CPPROF__FIRST_STEP static void
set_found(enum cpprof__name name)
{
    void *otherwise;

    if (!load_acquire(&cpprof__next[name])) {
        otherwise = hook(name, false);
        store_release(&cpprof__next[name],
                      otherwise ? otherwise : (void *)missing);
    }
    set_entry(name);
}

CPPROF__FIRST_STEP void
cpprof__take_over(void)
{
    unsigned i;

    if (load_acquire(&is_done))
        return;
    cpprof__names_find();
    for (i = 0; i < CPPROF__N_NAMES; i++)
        set_found(i);
    store_release(&is_done, true);
}

CPPROF__FIRST_STEP void
cpprof__switch_group(enum cpprof__group group, bool on)
{
    unsigned i;

    on = on && !cpprof__program_has_tsan();
    if (on)
        __atomic_store_n(&was_on[group], true, __ATOMIC_SEQ_CST);
    else if (!__atomic_load_n(&was_on[group], __ATOMIC_SEQ_CST))
        return; /* all are as they were at first */
    __atomic_store_n(&is_on[group], on, __ATOMIC_SEQ_CST);
    for (i = 0; i < CPPROF__N_NAMES; i++)
        if (groups[i] == group)
            set_entry(i);
}

void
cpprof__put_under(enum cpprof__name name, void *function)
{
    store_release(&cpprof__next[name], function);
    set_entry(name);
}

/* The library is first entered here: by the loader, or by a constructor. */
CPPROF__FIRST_STEP void *
cpprof__first_call(enum cpprof__name name)
{
    cpprof__take_over();
    return load_relaxed(&cpprof__entries[name]);
}
