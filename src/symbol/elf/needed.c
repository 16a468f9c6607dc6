/* SPDX-License-Identifier: MIT */
/*
 * Reads .debug_aranges (DWARF 5, 6.1.2), which has a set for each unit: where
 * the unit is in .debug_info, and the ranges of its code. Not every compiler
 * writes it: an address that is in no set may be in any unit.
 *
 * Invariant: the input is read through a bounded reader, and what is wrong with
 * it means that all is needed.
 */
#include "symbol/elf/needed.h"

#include "base/reader.h"
#include "own/memory.h"
#include "own/sort.h"

#include <stdlib.h>
#include <string.h>

/* A walk over all sets. */
struct walk {
    const struct cpprof__wanted *wanted;
    struct cpprof__needed *needed;
    bool *is_known; /* of each wanted address */
    bool has_room;  /* for all units that are needed */
};

/* The head of a set; the reader then stands at the first range. False: not one
 * that is known here. */
static bool
read_head(struct cpprof__reader *r, struct cpprof__reader *set, uint64_t *unit,
          uint8_t *address_bytes)
{
    const uint8_t *start = r->next;
    uint64_t n_bytes = cpprof__read_u32(r);
    bool is_64 = n_bytes == 0xffffffff;
    size_t n_head;

    if (is_64)
        n_bytes = cpprof__read_u64(r);
    if (n_bytes > cpprof__reader_left(r))
        return false;
    *set = cpprof__reader(r->next, n_bytes);
    cpprof__read_bytes(r, n_bytes);
    if (cpprof__read_u16(set) != 2)
        return false;
    *unit = is_64 ? cpprof__read_u64(set) : cpprof__read_u32(set);
    *address_bytes = cpprof__read_u8(set);
    if (cpprof__read_u8(set) || (*address_bytes != 8 && *address_bytes != 4))
        return false;
    n_head = (size_t)(set->next - start) % (2u * *address_bytes);
    if (n_head)
        cpprof__read_bytes(set, 2u * *address_bytes - n_head);
    return !set->bad;
}

/* The first wanted address from `at` on. */
static size_t
first_from(const struct cpprof__wanted *wanted, uint64_t at)
{
    size_t low = 0, high = wanted->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (wanted->at[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Does a wanted address lie in the n bytes from start on? */
static bool
note_range(struct walk *walk, uint64_t start, uint64_t n)
{
    const struct cpprof__wanted *wanted = walk->wanted;
    size_t first = first_from(wanted, start), i;

    for (i = first; i < wanted->n && wanted->at[i] - start < n; i++)
        walk->is_known[i] = true;
    return i > first;
}

static void
note_ranges(struct walk *walk, struct cpprof__reader *set, uint64_t unit,
            uint8_t address_bytes)
{
    bool is_needed = false;

    while (cpprof__reader_left(set) >= 2u * address_bytes) {
        bool is_8 = address_bytes == 8;
        uint64_t start = is_8 ? cpprof__read_u64(set) : cpprof__read_u32(set);
        uint64_t n = is_8 ? cpprof__read_u64(set) : cpprof__read_u32(set);

        is_needed |= note_range(walk, start, n);
    }
    if (!is_needed)
        return;
    walk->has_room &= CPPROF__BOUNDED_ROOM(&walk->needed->units);
    if (walk->has_room)
        walk->needed->units.at[walk->needed->units.n++] = unit;
}

/* The end of the last unit is where the next one begins. */
static void
note_end(struct walk *walk, struct cpprof__reader *set, uint64_t unit,
         uint8_t address_bytes)
{
    struct cpprof__needed *needed = walk->needed;

    if (unit > needed->units.at[needed->units.n - 1] && unit < needed->n_bytes)
        needed->n_bytes = unit;
}

static bool
each_set(struct walk *walk, const void *aranges, size_t n,
         void (*note)(struct walk *walk, struct cpprof__reader *set,
                      uint64_t unit, uint8_t address_bytes))
{
    struct cpprof__reader r = cpprof__reader(aranges, n), set;
    uint8_t address_bytes;
    uint64_t unit;

    while (cpprof__reader_left(&r)) {
        if (!read_head(&r, &set, &unit, &address_bytes))
            return false;
        note(walk, &set, unit, address_bytes);
    }
    return true;
}

static int
by_offset(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

bool
cpprof__needed_find(const void *aranges, size_t n,
                    const struct cpprof__wanted *wanted,
                    struct cpprof__needed *needed)
{
    struct walk walk = {wanted, needed,
                        cpprof__calloc(wanted->n + 1, sizeof *walk.is_known),
                        true};
    bool is_found = walk.is_known && wanted->n &&
                    each_set(&walk, aranges, n, note_ranges) && walk.has_room &&
                    !memchr(walk.is_known, false, wanted->n);

    cpprof__free(walk.is_known);
    if (is_found) {
        cpprof__sort(needed->units.at, needed->units.n,
                     sizeof *needed->units.at, by_offset);
        needed->n_bytes = UINT64_MAX;
        is_found = each_set(&walk, aranges, n, note_end) &&
                   needed->n_bytes != UINT64_MAX;
    }
    if (!is_found)
        cpprof__needed_free(needed);
    return is_found;
}

bool
cpprof__needed_has(const struct cpprof__needed *needed, uint64_t unit)
{
    return !needed->units.n || bsearch(&unit, needed->units.at, needed->units.n,
                                       sizeof *needed->units.at, by_offset);
}

void
cpprof__needed_free(struct cpprof__needed *needed)
{
    CPPROF__ARRAY_FREE(&needed->units);
    needed->n_bytes = 0;
}
