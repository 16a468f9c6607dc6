/* SPDX-License-Identifier: MIT */
/*
 * The records of a snapshot, packed into one block of 64-bit words and sorted
 * by key.
 *
 * A key packs stack, size class and label set. Records of one key are added up,
 * so keys are unique. The difference of two snapshots is one pass over both;
 * from a heap's records, which keep their order, a snapshot is subtracted by
 * binary search.
 */
#include "collect/capture/kept_records.h"

#include "collect/signal/tables/label_numbers.h"
#include "own/memory.h"
#include "own/sort.h"

#include <stdlib.h>
#include <string.h>

/* The parts of a key: stack, size class and labels, the highest bits first. */
#define LABEL_BITS 21
#define LABEL_MASK ((1u << LABEL_BITS) - 1)
#define CLASS_BITS 16
_Static_assert(CPPROF__TREE_NODES < LABEL_MASK, "labels fit, and lost ones");

static uint64_t
key_of(uint32_t stack, uint32_t size_class, uint32_t labels)
{
    return (uint64_t)stack << (CLASS_BITS + LABEL_BITS) |
           (uint64_t)(uint16_t)size_class << LABEL_BITS | (labels & LABEL_MASK);
}

static uint32_t
stack_of(uint64_t key)
{
    return (uint32_t)(key >> (CLASS_BITS + LABEL_BITS));
}

static uint32_t
labels_of(uint64_t key)
{
    uint32_t labels = key & LABEL_MASK;

    return labels == LABEL_MASK ? CPPROF__LABELS_LOST : labels;
}

static uint64_t *
record_at(const struct cpprof__kept *kept, size_t i)
{
    return kept->records + i * (kept->n_values + 1);
}

static int
by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* ---- making ----------------------------------------------------------- */

static bool
make_room(struct cpprof__kept *kept, size_t n, size_t n_values)
{
    memset(kept, 0, sizeof *kept);
    kept->n_values = (unsigned)n_values;
    kept->records =
        cpprof__calloc(n + 1, (n_values + 1) * sizeof *kept->records);
    return kept->records != NULL;
}

/* Append a record, unless all its values are 0. */
static void
add(struct cpprof__kept *kept, uint64_t key, const int64_t *values)
{
    uint64_t *record = record_at(kept, kept->n), any = 0;
    unsigned i;

    record[0] = key;
    for (i = 0; i < kept->n_values; i++) {
        record[1 + i] = (uint64_t)values[i];
        any |= record[1 + i];
    }
    kept->n += any != 0;
}

static void
join(const struct cpprof__kept *kept, uint64_t *to, const uint64_t *from)
{
    unsigned i;

    for (i = 1; i <= kept->n_values; i++)
        to[i] += from[i];
}

/* Hold the stacks and label sets of the keys, so that they are not recycled. */
static void
hold(const struct cpprof__kept *kept)
{
    size_t i;

    for (i = 0; i < kept->n; i++) {
        cpprof__tree_hold(stack_of(*record_at(kept, i)));
        cpprof__tree_hold(labels_of(*record_at(kept, i)));
    }
}

static void
drop(const struct cpprof__kept *kept)
{
    size_t i;

    for (i = 0; kept->records && i < kept->n; i++) {
        cpprof__tree_drop(stack_of(*record_at(kept, i)));
        cpprof__tree_drop(labels_of(*record_at(kept, i)));
    }
}

static void
finish(struct cpprof__kept *kept)
{
    size_t i, n = 0, n_bytes = (kept->n_values + 1) * sizeof *kept->records;
    uint64_t *shorter;

    cpprof__sort(kept->records, kept->n, n_bytes, by_key);
    for (i = 0; i < kept->n; i++) {
        uint64_t *record = record_at(kept, i);

        if (n && record_at(kept, n - 1)[0] == record[0])
            join(kept, record_at(kept, n - 1), record);
        else
            memmove(record_at(kept, n++), record, n_bytes);
    }
    kept->n = n;
    hold(kept);
    shorter = cpprof__realloc(kept->records, (n + 1) * n_bytes);
    if (shorter)
        kept->records = shorter;
}

bool
cpprof__kept_records(struct cpprof__kept *kept,
                     const struct cpprof__stack_record *records, size_t n,
                     size_t n_values)
{
    size_t i;

    if (!make_room(kept, n, n_values))
        return false;
    for (i = 0; i < n; i++)
        add(kept, key_of(records[i].stack, 0, records[i].labels),
            records[i].values);
    finish(kept);
    return true;
}

bool
cpprof__kept_heap(struct cpprof__kept *kept,
                  const struct cpprof__heap_records *records)
{
    size_t i;

    if (!make_room(kept, records->n, CPPROF__HEAP_VALUES))
        return false;
    for (i = 0; i < records->n; i++) {
        const struct cpprof__heap_record *record = &records->records[i];

        add(kept, key_of(record->stack, record->size_class, record->labels),
            record->values);
    }
    kept->lost[0] = records->n_lost;
    kept->lost[1] = records->lost_objects;
    kept->lost[2] = records->lost_bytes;
    kept->n_unfollowed = records->n_unfollowed;
    finish(kept);
    return true;
}

void
cpprof__kept_free(struct cpprof__kept *kept)
{
    drop(kept);
    cpprof__free(kept->records);
    memset(kept, 0, sizeof *kept);
}

/* ---- differences ------------------------------------------------------ */

/* Append now - base for one key, unless it is 0. Either may be NULL. */
static void
append_difference(const uint64_t *now, const uint64_t *base, unsigned n_values,
                  struct cpprof__stack_record *records, size_t *n)
{
    uint64_t key = now ? *now : *base;
    struct cpprof__stack_record record = {.stack = stack_of(key),
                                          .labels = labels_of(key)};
    bool any = false;
    unsigned i;

    for (i = 0; i < n_values; i++) {
        record.values[i] =
            (int64_t)((now ? now[1 + i] : 0) - (base ? base[1 + i] : 0));
        any |= record.values[i] != 0;
    }
    if (any)
        records[(*n)++] = record;
}

struct cpprof__stack_record *
cpprof__kept_difference(const struct cpprof__kept *now,
                        const struct cpprof__kept *base, size_t *n)
{
    struct cpprof__stack_record *records =
        cpprof__calloc(now->n + base->n + 1, sizeof *records);
    size_t i = 0, j = 0;

    *n = 0;
    while (records && (i < now->n || j < base->n)) {
        const uint64_t *x = i < now->n ? record_at(now, i) : NULL;
        const uint64_t *y = j < base->n ? record_at(base, j) : NULL;
        int order = !x ? 1 : !y ? -1 : by_key(x, y);

        append_difference(order <= 0 ? x : NULL, order >= 0 ? y : NULL,
                          now->n_values, records, n);
        i += order <= 0;
        j += order >= 0;
    }
    return records;
}

static bool
subtract(struct cpprof__heap_record *record, const struct cpprof__kept *base,
         unsigned n_values)
{
    uint64_t key = key_of(record->stack, record->size_class, record->labels);
    const uint64_t *found = NULL;
    bool any = false;
    unsigned i;

    if (base->n)
        found = bsearch(&key, base->records, base->n,
                        (base->n_values + 1) * sizeof *base->records, by_key);
    for (i = 0; i < CPPROF__HEAP_VALUES; i++) {
        if (found && i < n_values)
            record->values[i] -= (int64_t)found[1 + i];
        any |= record->values[i] != 0;
    }
    return any;
}

void
cpprof__kept_subtract_heap(struct cpprof__heap_records *records,
                           const struct cpprof__kept *base, bool in_use)
{
    unsigned n_values = in_use ? CPPROF__HEAP_VALUES : CPPROF__INUSE_OBJECTS;
    size_t i, n = 0;

    for (i = 0; i < records->n; i++) {
        struct cpprof__heap_record record = records->records[i];

        if (subtract(&record, base, n_values))
            records->records[n++] = record;
    }
    records->n = n;
    records->n_lost -= base->lost[0];
    records->lost_objects -= base->lost[1];
    records->lost_bytes -= base->lost[2];
    records->n_unfollowed -= base->n_unfollowed;
}
