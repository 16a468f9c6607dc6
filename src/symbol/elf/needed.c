/* SPDX-License-Identifier: MIT */
/*
 * Reads .debug_aranges (DWARF 5, 6.1.2), which has a set for each unit: where
 * the unit is in .debug_info, and the ranges of its code. Not every compiler
 * writes it: an address that is in no set may be in any unit.
 *
 * Then the heads of all units, to copy those that are needed. What a unit says
 * of itself counts from its own beginning, so it may stand anywhere; one that
 * says where others are is found out later (cpprof__unit_refers_out()).
 *
 * Invariant: the input is read through a bounded reader, and what is wrong with
 * it means that all is needed.
 */
#include "symbol/elf/needed.h"

#include "base/reader.h"
#include "own/memory.h"
#include "own/sort.h"

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

size_t
cpprof__wanted_from(const struct cpprof__wanted *wanted, uint64_t at)
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
    size_t first = cpprof__wanted_from(wanted, start), i;

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
        is_found = each_set(&walk, aranges, n, note_end);
    }
    if (!is_found)
        cpprof__needed_free(needed);
    return is_found;
}

/* ---- the units themselves --------------------------------------------- */

struct unit {
    uint64_t start; /* in .debug_info */
    uint64_t n;
    uint64_t abbrev; /* where its abbreviations begin */
    bool is_kept;
};

/* What the head of the unit at `start` tells (DWARF 5, 7.5.1). False: it is not
 * one that is known here. */
static bool
read_unit(const void *info, uint64_t n, uint64_t start, struct unit *unit)
{
    struct cpprof__reader r =
        cpprof__reader((const char *)info + start, n - start);
    uint64_t n_bytes = cpprof__read_u32(&r);
    bool is_64 = n_bytes == 0xffffffff;
    uint16_t version;

    if (is_64)
        n_bytes = cpprof__read_u64(&r);
    *unit = (struct unit){.start = start, .n = n_bytes + (is_64 ? 12 : 4)};
    version = cpprof__read_u16(&r);
    if (version >= 5)
        cpprof__read_u16(&r); /* its kind, and the size of addresses */
    unit->abbrev = is_64 ? cpprof__read_u64(&r) : cpprof__read_u32(&r);
    return !r.bad && version >= 2 && version <= 5 && unit->n > n_bytes;
}

/* Those before the end of the last needed one, and the next. */
struct units {
    CPPROF__ARRAY(struct unit) items;
};

/* False: some are not there as a whole, or there is no memory. */
static bool
list_units(const void *info, uint64_t n, uint64_t limit, struct units *units)
{
    uint64_t at = 0;
    struct unit unit;

    while (at < limit) {
        if (!read_unit(info, n, at, &unit) || unit.n > limit - at ||
            !CPPROF__BOUNDED_ROOM(&units->items))
            return false;
        units->items.at[units->items.n++] = unit;
        at += unit.n;
    }
    if (at < n && read_unit(info, n, at, &unit) &&
        CPPROF__BOUNDED_ROOM(&units->items))
        units->items.at[units->items.n++] = unit;
    return true;
}

/* Returns how many of the needed ones there are. */
static size_t
keep_needed(const struct cpprof__needed *needed, struct units *units)
{
    size_t n = 0, i;

    for (i = 0; i < units->items.n && n < needed->units.n; i++) {
        struct unit *unit = &units->items.at[i];

        unit->is_kept = unit->start == needed->units.at[n];
        n += unit->is_kept;
    }
    return n;
}

static struct unit *
largest_of(const struct units *units, uint64_t limit)
{
    struct unit *largest = units->items.at;
    size_t i;

    for (i = 1; i < units->items.n; i++)
        if (units->items.at[i].n > largest->n &&
            units->items.at[i].start < limit)
            largest = &units->items.at[i];
    return largest;
}

/* Abbreviations end where others begin. */
static uint64_t
abbrev_limit(const struct units *units)
{
    uint64_t last = 0, limit = UINT64_MAX;
    size_t i;

    for (i = 0; i < units->items.n; i++)
        if (units->items.at[i].is_kept && units->items.at[i].abbrev > last)
            last = units->items.at[i].abbrev;
    for (i = 0; i < units->items.n; i++)
        if (units->items.at[i].abbrev > last &&
            units->items.at[i].abbrev < limit)
            limit = units->items.at[i].abbrev;
    return limit;
}

static void
copy_unit(struct cpprof__picked *picked, const void *info,
          const struct unit *unit)
{
    memcpy((char *)picked->info + picked->n_info,
           (const char *)info + unit->start, unit->n);
    picked->n_info += unit->n;
}

/* `first`, and then what is kept beside it. */
static bool
copy_units(struct cpprof__picked *picked, const void *info,
           const struct units *units, const struct unit *first)
{
    uint64_t n_bytes = first ? first->n : 0;
    size_t i;

    for (i = 0; i < units->items.n; i++)
        if (units->items.at[i].is_kept)
            n_bytes += units->items.at[i].n;
    picked->n_info = 0;
    picked->info = cpprof__malloc(n_bytes);
    if (!picked->info)
        return false;
    if (first)
        copy_unit(picked, info, first);
    for (i = 0; i < units->items.n; i++)
        if (units->items.at[i].is_kept)
            copy_unit(picked, info, &units->items.at[i]);
    return true;
}

bool
cpprof__needed_pick(const struct cpprof__needed *needed, const void *info,
                    uint64_t n, struct cpprof__picked *picked)
{
    struct units units = {0};
    struct unit *largest;
    bool is_picked = false;

    if (n >= needed->n_bytes && list_units(info, n, needed->n_bytes, &units) &&
        units.items.n && keep_needed(needed, &units) == needed->units.n) {
        largest = largest_of(&units, needed->n_bytes);
        is_picked =
            copy_units(picked, info, &units, largest->is_kept ? NULL : largest);
        largest->is_kept = true;
        picked->n_abbrev = abbrev_limit(&units);
    }
    CPPROF__ARRAY_FREE(&units.items);
    return is_picked;
}

void
cpprof__needed_free(struct cpprof__needed *needed)
{
    CPPROF__ARRAY_FREE(&needed->units);
    needed->n_bytes = 0;
}
