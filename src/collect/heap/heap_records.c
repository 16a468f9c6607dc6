/* SPDX-License-Identifier: MIT */
/*
 * Sums a heap's tables up into records: live blocks by bucket first, then the
 * buckets, then records that differ only in what was not asked for become one.
 *
 * This order makes the values in use never exceed those allocated. Fractions
 * are rounded once, at the end, by a threshold that depends only on the
 * record, so a record never shrinks while it grows.
 */
#include "collect/heap/heap_records.h"

#include "arch/atomic.h"
#include "arch/mix.h"
#include "base/status.h"
#include "collect/signal/heap/heap_buckets.h"
#include "collect/signal/heap/heap_tables.h"
#include "own/memory.h"
#include "own/sort.h"

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
set_record(const struct reading *r, const struct cpprof__heap_bucket *bucket,
           const struct cpprof__heap_sum *live,
           struct cpprof__heap_record *record)
{
    struct cpprof__heap_sum in_use = *live;

    if (r->flags & CPPROF_FLAG_PEAK)
        cpprof__heap_at_peak(bucket, r->epoch, &in_use);
    *record = (struct cpprof__heap_record){
        .stack = bucket->stack,
        .labels = r->flags & CPPROF_FLAG_LABELS ? bucket->labels : 0,
        .size_class = bucket->size_class,
        .block_bytes = (int64_t)cpprof__heap_size_of_code(bucket->first_size),
        .fractions = {bucket->alloc_objects, bucket->alloc_bytes,
                      in_use.objects, in_use.bytes},
        .sampled = {(int64_t)bucket->n_sampled, (int64_t)bucket->bytes_sampled,
                    (int64_t)live->n_sampled, (int64_t)live->bytes_sampled},
    };
}

static void
read_buckets(const struct reading *r, struct cpprof__heap_records *records)
{
    uint32_t i;

    for (i = 1; i < r->n_buckets; i++) {
        struct cpprof__heap_record *record = &records->records[records->n];
        struct cpprof__heap_bucket bucket;

        if (!cpprof__heap_read_bucket(r->heap, i, &bucket) ||
            bucket.heap != r->number)
            continue;
        set_record(r, &bucket, &r->live[i], record);
        record->bucket = record->oldest = i;
        records->n++;
    }
}

static int
by_key(const void *a, const void *b)
{
    const struct cpprof__heap_record *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->size_class != y->size_class)
        return x->size_class < y->size_class ? -1 : 1;
    return (x->labels > y->labels) - (x->labels < y->labels);
}

static int
newest_first(const void *a, const void *b)
{
    const struct cpprof__heap_record *x = a, *y = b;

    return (y->bucket > x->bucket) - (y->bucket < x->bucket);
}

static void
add_record(struct cpprof__heap_record *to,
           const struct cpprof__heap_record *from)
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

/* Buckets that differ only in what was not asked for become one record. */
static void
join_records(struct cpprof__heap_records *records)
{
    struct cpprof__heap_record *all = records->records;
    size_t i, n = 0;

    if (!records->n)
        return;
    cpprof__sort(all, records->n, sizeof *all, by_key);
    for (i = 1; i < records->n; i++) {
        if (by_key(&all[n], &all[i]) == 0)
            add_record(&all[n], &all[i]);
        else
            all[++n] = all[i];
    }
    records->n = n + 1;
    cpprof__sort(all, records->n, sizeof *all, newest_first);
}

static int64_t
whole(uint64_t fractions)
{
    const uint64_t half = 1u << (CPPROF__HEAP_FRACTION_BITS - 1);

    return (int64_t)(fractions / (2 * half) + (fractions % (2 * half) >= half));
}

/*
 * The threshold above which a record's fraction is rounded up. It is random, so
 * that many records of a sample or two add up to what they stand for: rounded
 * to the nearest, a thousand records of 1.1 objects would be a thousand
 * objects. A record always has the same threshold, so it never shrinks as it
 * grows.
 */
static uint64_t
threshold(const struct cpprof__heap_record *record)
{
    uint64_t x = (uint64_t)record->stack << 32 ^
                 (uint64_t)record->size_class << 16 ^ record->labels;

    return cpprof__mix_u64(x) >> (64 - CPPROF__HEAP_FRACTION_BITS);
}

/* Blocks and buckets are not read at the same moment. What is in use was
 * allocated, so allocated is at least that. */
static void
finish_record(struct cpprof__heap_record *record)
{
    int i;

    for (i = CPPROF__INUSE_OBJECTS; i < CPPROF__HEAP_VALUES; i++) {
        if (record->fractions[i - CPPROF__INUSE_OBJECTS] < record->fractions[i])
            record->fractions[i - CPPROF__INUSE_OBJECTS] = record->fractions[i];
        if (record->sampled[i - CPPROF__INUSE_OBJECTS] < record->sampled[i])
            record->sampled[i - CPPROF__INUSE_OBJECTS] = record->sampled[i];
    }
    for (i = 0; i < CPPROF__HEAP_VALUES; i++)
        record->values[i] =
            (int64_t)((record->fractions[i] + threshold(record)) >>
                      CPPROF__HEAP_FRACTION_BITS);
}

static void
read_head(const struct reading *r, struct cpprof__heap_records *records)
{
    const struct cpprof__heap_head *head = r->heap->head;

    records->rate = load_relaxed(&head->rate);
    records->n_rates = load_relaxed(&head->n_rates);
    records->begun_ns = load_relaxed(&head->begun_ns);
    records->peak_ns = load_relaxed(&head->peaks[r->number].time_ns);
    if (r->number)
        return; /* losses are not counted by heap */
    records->n_unfollowed = load_relaxed(&head->n_unfollowed);
    records->n_lost = (int64_t)load_relaxed(&head->n_lost);
    records->lost_objects = whole(load_relaxed(&head->lost_objects));
    records->lost_bytes = whole(load_relaxed(&head->lost_bytes));
}

static void
read_all(struct reading *r, struct cpprof__heap_records *records)
{
    size_t i;

    cpprof__recycle_pause();
    r->epoch = load_acquire(&r->heap->head->peaks[r->number].epoch);
    cpprof__heap_sum_live(r->heap, r->live, r->n_buckets);
    read_buckets(r, records);
    cpprof__recycle_resume();
    join_records(records);
    for (i = 0; i < records->n; i++)
        finish_record(&records->records[i]);
    read_head(r, records);
}

enum cpprof_status
cpprof__heap_records_take(const struct cpprof__heap *heap, uint16_t number,
                          uint32_t flags, struct cpprof__heap_records *records,
                          struct cpprof_error *error)
{
    struct reading r = {
        .heap = heap,
        .n_buckets = cpprof__heap_n_buckets(heap),
        .number = number < CPPROF__HEAP_HEAPS ? number : 0,
        .flags = flags,
    };
    enum cpprof_status status = CPPROF_OK;

    memset(records, 0, sizeof *records);
    r.live = cpprof__calloc(r.n_buckets + 1ul, sizeof *r.live);
    records->records =
        cpprof__calloc(r.n_buckets + 1ul, sizeof *records->records);
    if (r.live && records->records) {
        read_all(&r, records);
    } else {
        cpprof__free(records->records);
        records->records = NULL;
        status = cpprof__fail_nomem(error);
    }
    cpprof__free(r.live);
    return status;
}
