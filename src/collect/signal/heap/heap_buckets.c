/* SPDX-License-Identifier: MIT */
/*
 * The table of buckets: finds or adds a key without a lock, adds to its sums,
 * and keeps the peak.
 *
 * A bucket is found through a window index (tables/window_index.h) from a hash
 * of its key. Sums are added with release order, so a reader that sees a sum
 * sees the key, too. Before the values in use of a bucket change, it keeps
 * what it had at the last peak, unless it has done so already: it compares its
 * epoch with that of the heap.
 *
 * Invariants: a bucket never moves and never changes its key; bucket 0 is not
 * used; nothing here allocates or makes a system call.
 */
#include "collect/signal/heap/heap_buckets.h"

#include "arch/clock.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/window_index.h"

#include <time.h>

#define NUMBER_BITS 19
#define LEVELS      5

_Static_assert(CPPROF__HEAP_BUCKETS == 1u << NUMBER_BITS, "numbers fit a slot");
_Static_assert(sizeof(struct cpprof__heap_bucket) % 8 == 0, "whole words");

/* Release, so that who sees the sum sees the key, too. */
#define add_release(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELEASE)

size_t
cpprof__bucket_index_bytes(void)
{
    return WINDOW_INDEX_SLOTS(LEVELS) * sizeof(uint32_t);
}

uint16_t
cpprof__heap_size_class(uint64_t n)
{
    unsigned power;

    if (n < 16)
        return (uint16_t)n;
    /* The highest bit, and the three below it. */
    power = 63 - (unsigned)__builtin_clzll(n);
    return (uint16_t)(power * 8 + (n >> (power - 3) & 7) - 16);
}

#define MEBIBYTES 0x80000000u

uint32_t
cpprof__heap_size_code(uint64_t n)
{
    if (n < MEBIBYTES)
        return (uint32_t)n;
    return MEBIBYTES |
           (n >> 20 < MEBIBYTES ? (uint32_t)(n >> 20) : MEBIBYTES - 1);
}

uint64_t
cpprof__heap_size_of_code(uint32_t code)
{
    return code & MEBIBYTES ? (uint64_t)(code & ~MEBIBYTES) << 20 : code;
}

static bool
is_key(const void *table, uint32_t number, const void *wanted)
{
    const struct cpprof__heap *heap = table;
    const struct cpprof__heap_bucket *b = &heap->buckets[number];
    const struct cpprof__heap_key *key = wanted;

    return b->stack == key->stack && b->labels == key->labels &&
           b->size_class == key->size_class && b->heap == key->heap;
}

static uint64_t
hash_of(const struct cpprof__heap_key *key)
{
    uint64_t kind = (uint64_t)key->labels << 32 |
                    (uint32_t)key->size_class << 16 | key->heap;

    return cpprof__mix_u64(cpprof__mix_u64(kind) + key->stack);
}

static uint32_t
make_bucket(void *table, const void *wanted)
{
    struct cpprof__heap *heap = table;
    const struct cpprof__heap_key *key = wanted;
    struct cpprof__heap_bucket *b;
    uint32_t number;

    if (load_relaxed(&heap->head->n_buckets) >= CPPROF__HEAP_BUCKETS)
        return 0;
    number = add_relaxed(&heap->head->n_buckets, 1);
    if (number >= CPPROF__HEAP_BUCKETS)
        return 0;
    b = &heap->buckets[number];
    b->stack = key->stack;
    b->labels = key->labels;
    b->size_class = key->size_class;
    b->heap = key->heap;
    cpprof__mirror(&heap->head->n_blocks, 8);
    return number;
}

uint32_t
cpprof__heap_bucket_of(struct cpprof__heap *heap,
                       const struct cpprof__heap_key *key)
{
    static const struct window_kind kind = {LEVELS, NUMBER_BITS, is_key,
                                            make_bucket};

    return window_find_or_make(&kind, heap->bucket_index, hash_of(key), heap,
                               key);
}

void
cpprof__heap_count_alloc(struct cpprof__heap *heap, uint32_t bucket,
                         uint64_t bytes, uint64_t weight)
{
    struct cpprof__heap_bucket *b = &heap->buckets[bucket];
    uint32_t none = 0;

    if (!load_relaxed(&b->first_size))
        cas_acq_rel(&b->first_size, &none, cpprof__heap_size_code(bytes));
    add_release(&b->n_sampled, 1);
    add_release(&b->bytes_sampled, bytes);
    add_release(&b->alloc_objects, weight);
    add_release(&b->alloc_bytes, weight * bytes);
}

/* Called before the bucket changes: if a peak came after its last change, its
 * present values are those at the peak. */
static void
keep_peak(struct cpprof__heap_bucket *b, uint64_t epoch)
{
    uint64_t seen = load_relaxed(&b->epoch);
    int64_t objects = load_relaxed(&b->now_objects);
    int64_t bytes = load_relaxed(&b->now_bytes);

    if (seen == epoch || !cas_acq_rel(&b->epoch, &seen, epoch))
        return;
    store_relaxed(&b->peak_objects, objects);
    store_relaxed(&b->peak_bytes, bytes);
}

static void
raise_peak(struct cpprof__heap_peak *p, int64_t now)
{
    int64_t peak = load_relaxed(&p->peak_bytes);

    while (now > peak) {
        if (cas_acq_rel(&p->peak_bytes, &peak, now)) {
            add_relaxed(&p->epoch, 1);
            store_relaxed(&p->time_ns, 0);
            return;
        }
    }
}

/* The first block that is freed after a peak ends it. The time comes from
 * libc's function, which reads the vdso's page, because programs under seccomp
 * may not make system calls in free(). It is the coarse clock, because
 * seccomp's strict mode also forbids reading the processor's counter. */
static void
end_peak(struct cpprof__heap_peak *p)
{
    if (load_relaxed(&p->time_ns) || !load_relaxed(&p->epoch))
        return;
    /* A program's own clock_gettime() may allocate. */
    cpprof__hook_self.exempt++;
    store_relaxed(&p->time_ns, cpprof__now_ns(CLOCK_REALTIME_COARSE));
    cpprof__hook_self.exempt--;
}

void
cpprof__heap_count_use(struct cpprof__heap *heap, uint32_t bucket,
                       int64_t objects, int64_t bytes)
{
    struct cpprof__heap_bucket *b = &heap->buckets[bucket];
    struct cpprof__heap_peak *p =
        &heap->head->peaks[b->heap % CPPROF__HEAP_HEAPS];

    if (bytes < 0)
        end_peak(p);
    keep_peak(b, load_relaxed(&p->epoch));
    add_relaxed(&b->now_objects, objects);
    add_relaxed(&b->now_bytes, bytes);
    raise_peak(p, add_relaxed(&p->now_bytes, bytes) + bytes);
    cpprof__mirror(b, sizeof *b);
    cpprof__mirror(p, sizeof *p);
}
