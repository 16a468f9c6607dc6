/* SPDX-License-Identifier: MIT */
#include "collect/heap/heap_rows.h"

#include "arch/atomic.h"
#include "arch/mix.h"
#include "base/status.h"
#include "collect/signal/heap/heap_buckets.h"
#include "collect/signal/heap/heap_read.h"

#include <stdlib.h>
#include <string.h>

/* Tables that are read, and what is known of them so far. */
struct reading {
    const struct cpprof__heap *heap;
    struct cpprof__heap_sum *live; /* by bucket */
    uint32_t n_buckets;
    uint16_t number; /* of the heap */
    uint32_t flags;
    uint64_t epoch; /* of the peak */
};

static void
set_row(const struct reading *r, const struct cpprof__heap_bucket *bucket,
        const struct cpprof__heap_sum *live, struct cpprof__heap_row *row)
{
    struct cpprof__heap_sum in_use = *live;

    if (r->flags & CPPROF_HEAP_PEAK)
        cpprof__heap_at_peak(bucket, r->epoch, &in_use);
    *row = (struct cpprof__heap_row){
        .stack = bucket->stack,
        .labels = r->flags & CPPROF_HEAP_LABELS ? bucket->labels : 0,
        .size_class = bucket->size_class,
        .block_bytes = (int64_t)cpprof__heap_size_of_code(bucket->first_size),
        .fractions = {bucket->alloc_objects, bucket->alloc_bytes,
                      in_use.objects, in_use.bytes},
        .sampled = {(int64_t)bucket->n_sampled, (int64_t)bucket->bytes_sampled,
                    (int64_t)live->n_sampled, (int64_t)live->bytes_sampled},
    };
}

static void
read_buckets(const struct reading *r, struct cpprof__heap_rows *rows)
{
    uint32_t i;

    for (i = 1; i < r->n_buckets; i++) {
        struct cpprof__heap_row *row = &rows->rows[rows->n];
        struct cpprof__heap_bucket bucket;

        if (!cpprof__heap_read_bucket(r->heap, i, &bucket) ||
            bucket.heap != r->number)
            continue;
        set_row(r, &bucket, &r->live[i], row);
        row->bucket = row->oldest = i;
        rows->n++;
    }
}

static int
compare_keys(const struct cpprof__heap_row *x, const struct cpprof__heap_row *y)
{
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->size_class != y->size_class)
        return x->size_class < y->size_class ? -1 : 1;
    return (x->labels > y->labels) - (x->labels < y->labels);
}

static int
by_key(const void *a, const void *b)
{
    return compare_keys(a, b);
}

static int
newest_first(const void *a, const void *b)
{
    const struct cpprof__heap_row *x = a, *y = b;

    return (y->bucket > x->bucket) - (y->bucket < x->bucket);
}

static void
add_row(struct cpprof__heap_row *to, const struct cpprof__heap_row *from)
{
    int i;

    for (i = 0; i < CPPROF__HEAP_VALUES; i++) {
        to->fractions[i] += from->fractions[i];
        to->sampled[i] += from->sampled[i];
    }
    if (from->bucket > to->bucket)
        to->bucket = from->bucket;
    if (from->oldest < to->oldest) {
        to->oldest = from->oldest;
        to->block_bytes = from->block_bytes;
    }
}

/* Buckets that differ only in what was not asked for become one row. */
static void
join_rows(struct cpprof__heap_rows *rows)
{
    struct cpprof__heap_row *all = rows->rows;
    size_t i, n = 0;

    if (!rows->n)
        return;
    qsort(all, rows->n, sizeof *all, by_key);
    for (i = 1; i < rows->n; i++) {
        if (compare_keys(&all[n], &all[i]) == 0)
            add_row(&all[n], &all[i]);
        else
            all[++n] = all[i];
    }
    rows->n = n + 1;
    qsort(all, rows->n, sizeof *all, newest_first);
}

static int64_t
whole(uint64_t fractions)
{
    const uint64_t half = 1u << (CPPROF__HEAP_FRACTION_BITS - 1);

    return (int64_t)(fractions / (2 * half) + (fractions % (2 * half) >= half));
}

/*
 * Where a row goes up to the next whole number: anywhere, by chance, so that
 * many rows of a sample or two add up to what they stand for. Rounded to the
 * nearest, a thousand rows of 1.1 objects would be a thousand objects. The same
 * row has always the same chance, so it never shrinks as it grows.
 */
static uint64_t
threshold(const struct cpprof__heap_row *row)
{
    uint64_t x = (uint64_t)row->stack << 32 ^ (uint64_t)row->size_class << 16 ^
                 row->labels;

    return cpprof__mix_u64(x) >> (64 - CPPROF__HEAP_FRACTION_BITS);
}

/* A block may have come between the reading of blocks and of buckets, or the
 * other way round: what is in use was allocated. */
static void
finish_row(struct cpprof__heap_row *row)
{
    int i;

    for (i = CPPROF__INUSE_OBJECTS; i < CPPROF__HEAP_VALUES; i++) {
        if (row->fractions[i - CPPROF__INUSE_OBJECTS] < row->fractions[i])
            row->fractions[i - CPPROF__INUSE_OBJECTS] = row->fractions[i];
        if (row->sampled[i - CPPROF__INUSE_OBJECTS] < row->sampled[i])
            row->sampled[i - CPPROF__INUSE_OBJECTS] = row->sampled[i];
    }
    for (i = 0; i < CPPROF__HEAP_VALUES; i++)
        row->values[i] = (int64_t)((row->fractions[i] + threshold(row)) >>
                                   CPPROF__HEAP_FRACTION_BITS);
}

static void
read_head(const struct reading *r, struct cpprof__heap_rows *rows)
{
    const struct cpprof__heap_head *head = r->heap->head;

    rows->rate = load_relaxed(&head->rate);
    rows->n_rates = load_relaxed(&head->n_rates);
    rows->peak_ns = load_relaxed(&head->peaks[r->number].time_ns);
    if (r->number)
        return; /* losses are not counted by heap */
    rows->n_unfollowed = load_relaxed(&head->n_unfollowed);
    rows->n_lost = (int64_t)load_relaxed(&head->n_lost);
    rows->lost_objects = whole(load_relaxed(&head->lost_objects));
    rows->lost_bytes = whole(load_relaxed(&head->lost_bytes));
}

static void
read_all(struct reading *r, struct cpprof__heap_rows *rows)
{
    size_t i;

    r->epoch = load_acquire(&r->heap->head->peaks[r->number].epoch);
    cpprof__heap_sum_live(r->heap, r->live, r->n_buckets);
    read_buckets(r, rows);
    join_rows(rows);
    for (i = 0; i < rows->n; i++)
        finish_row(&rows->rows[i]);
    read_head(r, rows);
}

enum cpprof_status
cpprof__heap_rows_take(const struct cpprof__heap *heap, uint16_t number,
                       uint32_t flags, struct cpprof__heap_rows *rows,
                       struct cpprof_error *error)
{
    struct reading r = {
        .heap = heap,
        .n_buckets = cpprof__heap_n_buckets(heap),
        .number = number < CPPROF__HEAP_HEAPS ? number : 0,
        .flags = flags,
    };
    enum cpprof_status status = CPPROF_OK;

    memset(rows, 0, sizeof *rows);
    r.live = calloc(r.n_buckets + 1ul, sizeof *r.live);
    rows->rows = calloc(r.n_buckets + 1ul, sizeof *rows->rows);
    if (r.live && rows->rows) {
        read_all(&r, rows);
    } else {
        free(rows->rows);
        rows->rows = NULL;
        status = cpprof__fail_nomem(error);
    }
    free(r.live);
    return status;
}
