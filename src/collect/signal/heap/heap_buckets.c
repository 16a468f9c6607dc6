/* SPDX-License-Identifier: MIT */
/*
 * The table of buckets: finds or adds a key without a lock, adds to its sums,
 * and keeps the peak.
 *
 * A bucket is found through a window index (tables/window_index.h) from a hash
 * of its key. Sums are added with release order, so a reader that sees a sum
 * sees the key, too. Before the values in use of a bucket change, it keeps what
 * it had at the last peak, unless it has done so already: it compares its epoch
 * with that of the heap.
 *
 * A bucket holds its stack and its label set in the tree. When it is recycled
 * (tables/entries.h) its sums move to the same stack with lost labels, or are
 * counted as lost, and it drops both.
 *
 * Invariants: a bucket never moves, and changes its key only when it is
 * recycled; bucket 0 is not used; nothing here allocates or makes a system
 * call.
 */
#include "collect/signal/heap/heap_buckets.h"

#include "arch/clock.h"
#include "collect/signal/heap/exempt.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/window_index.h"

#include <time.h>

#define NUMBER_BITS 19
#define LEVELS      5
#define INDEX_BYTES (WINDOW_INDEX_SLOTS(LEVELS) * sizeof(uint32_t))

_Static_assert(CPPROF__HEAP_BUCKETS == 1u << NUMBER_BITS, "numbers fit a slot");
_Static_assert(sizeof(struct cpprof__heap_bucket) % 8 == 0, "whole words");

/* Release, so that a thread that sees the sum sees the key, too. */
#define add_release(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELEASE)

size_t
cpprof__bucket_index_bytes(void)
{
    return INDEX_BYTES + cpprof__entries_bytes(CPPROF__HEAP_BUCKETS);
}

void
cpprof__buckets_make(struct cpprof__heap *heap, void *index)
{
    heap->bucket_index = index;
    cpprof__entries_make(&heap->entries, CPPROF__HEAP_BUCKETS,
                         &heap->head->n_buckets, (char *)index + INDEX_BYTES);
}

void
cpprof__buckets_set_bound(struct cpprof__heap *heap, uint32_t bound)
{
    store_relaxed(&heap->bucket_bound, bound);
    cpprof__entries_set_bound(&heap->entries, bound);
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

    number = cpprof__entries_take(&heap->entries);
    if (!number)
        return 0;
    b = &heap->buckets[number];
    b->labels = key->labels;
    b->size_class = key->size_class;
    b->heap = key->heap;
    store_release(&b->stack, key->stack);
    cpprof__tree_hold(b->stack);
    cpprof__tree_hold(b->labels);
    cpprof__mirror(&heap->head->n_blocks, 8);
    return number;
}

static const struct window_kind kind = {LEVELS, NUMBER_BITS, is_key,
                                        make_bucket};

uint32_t
cpprof__heap_bucket_of(struct cpprof__heap *heap,
                       const struct cpprof__heap_key *key)
{
    uint32_t number =
        window_find_or_make(&kind, heap->bucket_index, hash_of(key), heap, key);

    if (number)
        cpprof__entries_use(&heap->entries, number);
    return number;
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

    cpprof__entries_use(&heap->entries, bucket);
    if (bytes < 0)
        end_peak(p);
    keep_peak(b, load_relaxed(&p->epoch));
    add_relaxed(&b->now_objects, objects);
    add_relaxed(&b->now_bytes, bytes);
    raise_peak(p, add_relaxed(&p->now_bytes, bytes) + bytes);
    cpprof__mirror(b, sizeof *b);
    cpprof__mirror(p, sizeof *p);
}

/* ---- from the beginning ----------------------------------------------- */

/* The peak is now. */
static void
begin_bucket(struct cpprof__heap *heap, struct cpprof__heap_bucket *b)
{
    const struct cpprof__heap_peak *p =
        &heap->head->peaks[b->heap % CPPROF__HEAP_HEAPS];

    store_relaxed(&b->alloc_objects, (uint64_t)0);
    store_relaxed(&b->alloc_bytes, (uint64_t)0);
    store_relaxed(&b->n_sampled, (uint64_t)0);
    store_relaxed(&b->bytes_sampled, (uint64_t)0);
    store_relaxed(&b->peak_objects, load_relaxed(&b->now_objects));
    store_relaxed(&b->peak_bytes, load_relaxed(&b->now_bytes));
    store_relaxed(&b->epoch, load_relaxed(&p->epoch));
}

void
cpprof__buckets_begin_anew(struct cpprof__heap *heap)
{
    struct cpprof__heap_head *head = heap->head;
    uint32_t i;

    for (i = 1; i < cpprof__heap_n_buckets(heap); i++)
        begin_bucket(heap, &heap->buckets[i]);
    for (i = 0; i < CPPROF__HEAP_HEAPS; i++) {
        struct cpprof__heap_peak *p = &head->peaks[i];

        store_relaxed(&p->peak_bytes, load_relaxed(&p->now_bytes));
        store_relaxed(&p->time_ns, (uint64_t)0);
    }
    store_relaxed(&head->n_rates, (uint64_t)0);
    store_relaxed(&head->n_lost, (uint64_t)0);
    store_relaxed(&head->lost_bytes, (uint64_t)0);
    store_relaxed(&head->lost_objects, (uint64_t)0);
    store_relaxed(&head->n_unfollowed, (uint64_t)0);
}

/* ---- recycling -------------------------------------------------------- */

static bool
is_there(void *table, uint32_t number)
{
    return load_acquire(
               &((struct cpprof__heap *)table)->buckets[number].stack) != 0;
}

static bool
has_labels(const struct cpprof__heap_bucket *b)
{
    return b->labels && b->labels != CPPROF__LABELS_LOST;
}

/* Is the bucket to stay? Buckets with label sets are given up first, others
 * only if that does not make enough room. */
static bool
is_wanted(void *table, uint32_t number)
{
    const struct cpprof__heap *heap = table;
    const struct cpprof__heap_bucket *b = &heap->buckets[number];

    return load_acquire(&b->now_objects) || load_acquire(&b->now_bytes) ||
           (!heap->gives_up_stacks && !has_labels(b));
}

static struct cpprof__heap_key
key_of(const struct cpprof__heap_bucket *b)
{
    return (struct cpprof__heap_key){b->stack, b->labels, b->size_class,
                                     b->heap};
}

static void
remove_bucket(void *table, uint32_t number)
{
    struct cpprof__heap *heap = table;
    const struct cpprof__heap_key key = key_of(&heap->buckets[number]);

    window_remove(&kind, heap->bucket_index, hash_of(&key), number);
}

/* Add the sums of a bucket of which nothing is in use. */
static void
add_sums(struct cpprof__heap *heap, uint32_t to,
         const struct cpprof__heap_bucket *from)
{
    struct cpprof__heap_bucket *b = &heap->buckets[to];
    uint64_t epoch =
        load_relaxed(&heap->head->peaks[b->heap % CPPROF__HEAP_HEAPS].epoch);
    uint32_t none = 0;

    cas_acq_rel(&b->first_size, &none, from->first_size);
    if (from->epoch == epoch && from->peak_bytes) {
        keep_peak(b, epoch);
        add_relaxed(&b->peak_objects, from->peak_objects);
        add_relaxed(&b->peak_bytes, from->peak_bytes);
    }
    add_release(&b->n_sampled, from->n_sampled);
    add_release(&b->bytes_sampled, from->bytes_sampled);
    add_release(&b->alloc_objects, from->alloc_objects);
    add_release(&b->alloc_bytes, from->alloc_bytes);
    cpprof__mirror(b, sizeof *b);
}

static void
lose_sums(struct cpprof__heap_head *head,
          const struct cpprof__heap_bucket *from)
{
    add_relaxed(&head->n_lost, from->n_sampled);
    add_relaxed(&head->lost_bytes, from->alloc_bytes);
    add_relaxed(&head->lost_objects, from->alloc_objects);
    cpprof__mirror(&head->n_lost, 3 * sizeof head->n_lost);
}

static void
clear_bucket(void *table, uint32_t number)
{
    struct cpprof__heap *heap = table;
    struct cpprof__heap_bucket *b = &heap->buckets[number], was = *b;
    struct cpprof__heap_key key = key_of(b);
    const size_t sums = offsetof(struct cpprof__heap_bucket, alloc_objects);
    uint32_t to = 0;

    key.labels = CPPROF__LABELS_LOST;
    if (has_labels(b) && was.n_sampled)
        to = cpprof__heap_bucket_of(heap, &key);
    if (to)
        add_sums(heap, to, &was);
    else
        lose_sums(heap->head, &was);
    __builtin_memset((char *)b + sums, 0, sizeof *b - sums);
    b->first_size = 0;
    b->labels = 0;
    store_release(&b->stack, 0u);
    cpprof__mirror(b, sizeof *b);
    cpprof__tree_drop(was.stack);
    cpprof__tree_drop(was.labels);
}

void
cpprof__buckets_recycle(void)
{
    static const struct cpprof__entries_kind buckets = {
        is_there, is_wanted, remove_bucket, clear_bucket};
    struct cpprof__heap *heap = &cpprof__heap;

    heap->gives_up_stacks = cpprof__entries_left(&heap->entries) <
                                load_relaxed(&heap->bucket_bound) / 4 ||
                            cpprof__tree_left() < CPPROF__TREE_NODES / 4;
    cpprof__entries_sweep(&heap->entries, &buckets, heap);
}
