/* SPDX-License-Identifier: MIT */
/*
 * The table of names (collect/runtime/real.h) with what each of them does here,
 * and the switching of groups.
 *
 * Invariant: a pointer leads to a function that can be called at any time. It
 * is set after the next definition was found, and an operator of C++ whose next
 * definition went with a library leads to NAME_first again.
 */
#include "interpose/take_over.h"

#include "arch/place.h"

#include <link.h>
#include <stdlib.h>

static bool is_done
    CPPROF__AT_START; /* all names were found, and all entries set */
static bool is_on[CPPROF__N_GROUPS] CPPROF__AT_START;

static const struct row {
    struct cpprof__hook *hook;
    enum cpprof__group group;
} rows[] = {
#define ROW(group, name) {&name##_hook, CPPROF__##group},
    CPPROF__NAMES(ROW)};

/* The program called what cannot be carried out. */
static void
missing(void)
{
    abort();
}

static bool
is_operator(const struct row *row)
{
    return row->group == CPPROF__NEW || row->group == CPPROF__DELETE;
}

/* An operator that is not the allocator's own, as those of the standard
 * libraries, calls malloc, and is counted there. */
static bool
is_counted(const struct row *row, enum cpprof__name name)
{
    return !is_operator(row) || cpprof__is_of_allocator(name);
}

static void
set_to(const struct row *row, enum cpprof__name name, bool on)
{
    void *to = load_relaxed(&cpprof__next[name]);

    if (to && on && is_counted(row, name))
        to = row->hook->on;
    __atomic_store_n(&row->hook->entry, to ? to : row->hook->first,
                     __ATOMIC_SEQ_CST);
}

static void
set_entry(enum cpprof__name name)
{
    const struct row *row = &rows[name];
    bool *group = &is_on[row->group], on;

    do {
        on = __atomic_load_n(group, __ATOMIC_SEQ_CST);
        set_to(row, name, on);
    } while (on != __atomic_load_n(group, __ATOMIC_SEQ_CST));
}

/* What nobody defines is what it is otherwise. */
static void
set_all(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__N_NAMES; i++) {
        void *otherwise = rows[i].hook->otherwise;

        if (!cpprof__next[i] && !is_operator(&rows[i]))
            cpprof__next[i] = otherwise ? otherwise : (void *)missing;
        set_entry(i);
    }
}

void
cpprof__take_over(void)
{
    if (load_acquire(&is_done))
        return;
    cpprof__names_find();
    set_all();
    store_release(&is_done, true);
}

void
cpprof__switch_group(enum cpprof__group group, bool on)
{
    unsigned i;

    on = on && !cpprof__program_has_tsan();
    __atomic_store_n(&is_on[group], on, __ATOMIC_SEQ_CST);
    for (i = 0; i < CPPROF__N_NAMES; i++)
        if (rows[i].group == group)
            set_entry(i);
}

/* ---- operators, which come and go ------------------------------------- */

static int
find_operators(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned i;

    cpprof__names_find_operators();
    for (i = 0; i < CPPROF__N_NAMES; i++)
        if (is_operator(&rows[i]))
            set_entry(i);
    return 1;
}

/* Inside a look at its list the loader takes nothing out of it: other threads
 * may be unloading. */
void
cpprof__find_operators_again(void)
{
    dl_iterate_phdr(find_operators, NULL);
}

/* The library is first entered here: by the loader, or by a constructor. Later
 * only an operator that nobody defined leads here. */
void *
cpprof__first_call(enum cpprof__name name)
{
    const struct row *row = &rows[name];

    if (!load_acquire(&is_done)) {
        cpprof__take_over();
    } else {
        cpprof__find_operators_again();
        cpprof__switch_group(CPPROF__UNLOAD, true); /* they may go again */
    }
    if (!load_relaxed(&cpprof__next[name]))
        return row->hook->otherwise;
    return load_relaxed(&row->hook->entry);
}
