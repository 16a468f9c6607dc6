/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the program's own, by coroutine, while ours are in their place. A
 * coroutine without one has no entry, so there are few. Entries are made in
 * handlers, too, where there is room; more room is made outside.
 *
 * A coroutine that ends leaves its entry: if another gets its address, with our
 * hook from who made it, it has that hook, which is what it would have
 * inherited.
 */
#include "programs.h"

#include "state.h"

#include <stdlib.h>

static struct program_hook *
slots_of(const struct programs *programs)
{
    return programs->slots ? programs->slots
                           : (struct program_hook *)programs->own;
}

/* The index of the coroutine's entry, or n_used. For NULL: the first free
 * entry. */
static uint32_t
find(const struct programs *programs, const lua_State *L)
{
    const struct program_hook *slots = slots_of(programs);
    uint32_t i;

    for (i = 0; i < programs->n_used && slots[i].of != L; i++) {
    }
    return i;
}

struct program_hook
program_of(const struct state *s, lua_State *L)
{
    const struct programs *programs = &s->programs;
    uint32_t i = programs->n_used ? find(programs, L) : 0;

    if (i < programs->n_used)
        return slots_of(programs)[i];
    return (struct program_hook){.of = L};
}

static bool
put(struct programs *programs, const struct program_hook *program)
{
    uint32_t i = find(programs, program->of);

    if (i == programs->n_used)
        i = find(programs, NULL);
    if (i == programs->n_slots) {
        programs->is_full = 1;
        return false;
    }
    slots_of(programs)[i] = *program;
    if (i == programs->n_used)
        programs->n_used = i + 1;
    return true;
}

static bool
begin_change(struct programs *programs)
{
    return !swap_acq_rel(&programs->is_changing, 1);
}

static void
end_change(struct programs *programs)
{
    store_release(&programs->is_changing, 0);
}

bool
program_put(struct state *s, const struct program_hook *program)
{
    struct programs *programs = &s->programs;
    bool is_put;

    if (!program->hook) {
        program_remove(s, program->of);
        return true;
    }
    if (!begin_change(programs))
        return false;
    is_put = put(programs, program);
    end_change(programs);
    return is_put;
}

void
program_remove(struct state *s, lua_State *L)
{
    struct programs *programs = &s->programs;
    uint32_t i;

    if (!programs->n_used || !begin_change(programs))
        return;
    i = find(programs, L);
    if (i < programs->n_used)
        slots_of(programs)[i].of = NULL;
    while (programs->n_used && !slots_of(programs)[programs->n_used - 1].of)
        programs->n_used--;
    end_change(programs);
}

void
programs_grow(struct state *s)
{
    struct programs *programs = &s->programs;
    uint32_t n = 2 * programs->n_slots;
    struct program_hook *slots, *old;

    if (!programs->is_full || !(slots = calloc(n, sizeof *slots)))
        return;
    if (!begin_change(programs)) {
        free(slots);
        return;
    }
    old = programs->slots;
    memcpy(slots, slots_of(programs), programs->n_used * sizeof *slots);
    programs->slots = slots;
    programs->n_slots = n;
    programs->is_full = 0;
    end_change(programs);
    free(old);
}

void
programs_clear(struct programs *programs)
{
    free(programs->slots);
    memset(programs, 0, sizeof *programs);
    programs->n_slots = sizeof programs->own / sizeof *programs->own;
}
