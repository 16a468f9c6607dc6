/* SPDX-License-Identifier: MIT */
/*
 * Whose a virtual function is, by the tables that it stands in.
 *
 * It is a class's own if it stands in the class's own table and in no other but
 * those of classes that come from it, and if everything is known of all bases:
 * what is inherited from one whose table is elsewhere would look the same. Left
 * out are classes with virtual bases, in whose tables stand pieces of code of
 * other classes; code that unrelated classes share (pure virtual, folded); and
 * classes of one name, as two files may have.
 */
#include "symbol/elf/vtables.h"

#include <string.h>

/* Of one question: tables that have the function, and classes that a walk over
 * the bases meets. */
#define MOST_TABLES 4096
#define MOST_STEPS  64

void
cpprof__vtables_free(struct cpprof__vtables *tables)
{
    cpprof__vtables_read_end(tables);
    CPPROF__ARRAY_FREE(&tables->classes);
    CPPROF__ARRAY_FREE(&tables->bases);
    CPPROF__ARRAY_FREE(&tables->slots);
    memset(tables, 0, sizeof *tables);
}

size_t
cpprof__vtables_held(const struct cpprof__vtables *tables)
{
    return tables->classes.capacity * sizeof *tables->classes.at +
           tables->bases.capacity * sizeof *tables->bases.at +
           tables->slots.capacity * sizeof *tables->slots.at;
}

/* A walk over the bases of a class. */
struct walk {
    const struct cpprof__vtables *tables;
    const struct cpprof__class *wanted; /* NULL: walk over all */
    unsigned n_steps;
    bool is_found;
    bool is_unsure; /* something is not known of one of them */
};

static void
walk_up(struct walk *w, const struct cpprof__class *class)
{
    uint32_t i;

    for (i = 0; i < class->n_bases && !w->is_found; i++) {
        uint64_t number = w->tables->bases.at[class->first_base + i];
        const struct cpprof__class *base = &w->tables->classes.at[number];

        if (number == UINT64_MAX || ++w->n_steps > MOST_STEPS) {
            w->is_unsure = true;
            return;
        }
        w->is_unsure |= base->is_unsure || !base->has_table;
        w->is_found = base == w->wanted;
        if (!w->is_found)
            walk_up(w, base);
    }
}

static bool
comes_from(const struct cpprof__vtables *tables,
           const struct cpprof__class *class, const struct cpprof__class *base)
{
    struct walk w = {.tables = tables, .wanted = base};

    if (class == base)
        return true;
    walk_up(&w, class);
    return w.is_found;
}

static bool
is_sure(const struct cpprof__vtables *tables, const struct cpprof__class *class)
{
    struct walk w = {.tables = tables};

    walk_up(&w, class);
    return !w.is_unsure && !class->is_unsure && !class->has_namesake;
}

/* The one of those that have the n slots which all others come from, or NULL.
 * Were there one, this would find it; whether it is one is seen then. */
static const struct cpprof__class *
common_base(const struct cpprof__vtables *tables,
            const struct cpprof__slot *slots, size_t n)
{
    const struct cpprof__class *all = tables->classes.at;
    const struct cpprof__class *base = &all[slots[0].class];
    size_t i;

    for (i = 1; i < n; i++)
        if (comes_from(tables, base, &all[slots[i].class]))
            base = &all[slots[i].class];
    for (i = 0; i < n; i++)
        if (!comes_from(tables, &all[slots[i].class], base))
            return NULL;
    return base;
}

/* The first slot of a function, and how many there are. */
static const struct cpprof__slot *
slots_of(const struct cpprof__vtables *tables, uint64_t function, size_t *n)
{
    const struct cpprof__slot *all = tables->slots.at;
    size_t low = 0, high = tables->slots.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (all[middle].function < function)
            low = middle + 1;
        else
            high = middle;
    }
    for (*n = 0;
         low + *n < tables->slots.n && all[low + *n].function == function;)
        ++*n;
    return all + low;
}

/* The class whose own table, and no other but of those that come from it, has
 * the function. */
static const struct cpprof__class *
owner_of(const struct cpprof__vtables *tables, uint64_t function,
         uint32_t *number)
{
    size_t n, i;
    const struct cpprof__slot *slots = slots_of(tables, function, &n);
    const struct cpprof__class *class =
        n && n <= MOST_TABLES ? common_base(tables, slots, n) : NULL;

    if (!class || !is_sure(tables, class))
        return NULL;
    for (i = 0; &tables->classes.at[slots[i].class] != class; i++)
        ;
    *number = slots[i].number; /* the lowest, in its own table first */
    return *number != CPPROF__OTHER_PART ? class : NULL;
}

/* ---- thunks ------------------------------------------------------------ */

/* Where code jumps to that does nothing else but subtract from the pointer to
 * the object, x86-64; or 0. */
static uint64_t
thunk_target(const struct cpprof__frame_table *frames, uint64_t address)
{
    size_t n;
    const uint8_t *code = cpprof__frame_table_code(frames, address, &n);
    size_t at = code && n >= 32 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
    int32_t distance;

    if (!code || n < 32)
        return 0;
    if (!memcmp(code + at, "\x48\x83\xef", 3)) /* sub $8 bits, %rdi */
        at += 4;
    else if (!memcmp(code + at, "\x48\x81\xef", 3)) /* sub $32 bits, %rdi */
        at += 7;
    else
        return 0;
    if (code[at] == 0xeb)
        return address + at + 2 + (uint64_t)(int64_t)(int8_t)code[at + 1];
    if (code[at] != 0xe9)
        return 0;
    memcpy(&distance, code + at + 1, sizeof distance);
    return address + at + 5 + (uint64_t)(int64_t)distance;
}

/* A thunk stands in the parts of a class's other bases, for a function that
 * stands in the class's own table. */
static bool
is_thunk_of(const struct cpprof__vtables *tables, uint64_t function,
            uint64_t target)
{
    size_t n, n_target, i, k = 0;
    const struct cpprof__slot *slots = slots_of(tables, function, &n);
    const struct cpprof__slot *others = slots_of(tables, target, &n_target);

    for (i = 0; i < n; i++) {
        while (k < n_target && others[k].class < slots[i].class)
            k++;
        if (slots[i].number != CPPROF__OTHER_PART || k == n_target ||
            others[k].class != slots[i].class)
            return false;
    }
    return n > 0;
}

const struct cpprof__class *
cpprof__vtables_find(struct cpprof__vtables *tables,
                     const struct cpprof__frame_table *frames,
                     const struct cpprof__ranges *code, uint64_t address,
                     uint32_t *number)
{
    const struct cpprof__class *class;
    uint64_t target;

    if (!tables->is_read && frames->file)
        cpprof__vtables_read(tables, frames->file, code);
    class = owner_of(tables, address, number);
    if (class || !tables->slots.n)
        return class;
    target = thunk_target(frames, address);
    return target && is_thunk_of(tables, address, target)
               ? owner_of(tables, target, number)
               : NULL;
}
