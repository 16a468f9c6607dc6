/* SPDX-License-Identifier: MIT */
/*
 * The sums of waits by profile, stack and label set: found or added without a
 * lock, as the buckets of the heap are.
 *
 * The block is reserved by the first rate that is not 0. Counts are fixed-point
 * fractions, and the delay is added with release order, so whoever sees it sees
 * the key.
 *
 * Invariants: bucket 0 is not used; a bucket never changes its key; a forked
 * child sets all sums to 0 and keeps the keys.
 */
#include "collect/signal/waits/wait_buckets.h"

#include "arch/atomic.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/thread.h"
#include "collect/signal/tables/window_index.h"

#define MAGIC       "cpprofW1"
#define NUMBER_BITS 16
#define LEVELS      4

_Static_assert(CPPROF__WAIT_BUCKETS == 1u << NUMBER_BITS, "numbers fit a slot");
_Static_assert(sizeof(struct cpprof__wait_bucket) == 32, "no padding");

struct block {
    union {
        struct cpprof__waits_head head;
        char page[4096];
    };
    struct cpprof__wait_bucket buckets[CPPROF__WAIT_BUCKETS];
};

static struct reserved {
    struct block block;
    uint32_t index[WINDOW_INDEX_SLOTS(LEVELS)]; /* private */
} * reserved;

struct cpprof__waits cpprof__waits;

size_t
cpprof__waits_bytes(void)
{
    return sizeof(struct block);
}

/* Whoever is late does the same again. */
bool
cpprof__waits_reserve(void)
{
    struct reserved *p =
        cpprof__reserve_once((void **)&reserved, sizeof *reserved);

    if (!p)
        return false;
    __builtin_memcpy(p->block.head.magic, MAGIC, sizeof p->block.head.magic);
    store_relaxed(&cpprof__waits.buckets, p->block.buckets);
    store_release(&cpprof__waits.head, &p->block.head);
    return true;
}

static uint32_t
make_bucket(void *table, const void *wanted)
{
    struct block *block = table;
    const struct cpprof__wait_bucket *key = wanted;
    struct cpprof__wait_bucket *b;
    uint32_t number = 0;

    cas_acq_rel(&block->head.n_buckets, &number, 1); /* 0 is none */
    if (load_relaxed(&block->head.n_buckets) >= CPPROF__WAIT_BUCKETS)
        return 0;
    number = add_relaxed(&block->head.n_buckets, 1);
    if (number >= CPPROF__WAIT_BUCKETS)
        return 0;
    b = &block->buckets[number];
    b->stack = key->stack;
    b->labels = key->labels;
    b->profile = key->profile;
    cpprof__mirror(&block->head, sizeof block->head);
    return number;
}

static bool
is_key(const void *table, uint32_t number, const void *wanted)
{
    const struct cpprof__wait_bucket *b =
        &((const struct block *)table)->buckets[number];
    const struct cpprof__wait_bucket *key = wanted;

    return b->stack == key->stack && b->labels == key->labels &&
           b->profile == key->profile;
}

/* The number of a key's bucket; 0: there is no room. */
static uint32_t
bucket_of(const struct cpprof__wait_bucket *key)
{
    static const struct window_kind kind = {LEVELS, NUMBER_BITS, is_key,
                                            make_bucket};
    uint64_t which = (uint64_t)key->labels << 32 | key->profile;
    uint64_t hash = cpprof__mix_u64(cpprof__mix_u64(which) + key->stack);

    return window_find_or_make(&kind, reserved->index, hash, &reserved->block,
                               key);
}

/* Release, so that who sees one of both sees the key, too. */
void
cpprof__wait_count_more(uint32_t bucket, uint64_t count, uint64_t delay_ns)
{
    struct cpprof__wait_bucket *b =
        &load_acquire(&reserved)->block.buckets[bucket];

    __atomic_fetch_add(&b->delay_ns, delay_ns, __ATOMIC_RELEASE);
    __atomic_fetch_add(&b->count, count, __ATOMIC_RELEASE);
    cpprof__mirror(b, sizeof *b);
}

uint32_t
cpprof__wait_count(enum cpprof__wait_profile profile, uint32_t stack,
                   uint64_t count, uint64_t delay_ns)
{
    struct cpprof__wait_bucket key = {.stack = stack, .profile = profile};
    struct block *block = &load_acquire(&reserved)->block;
    uint32_t number = 0;

    if (!block)
        return 0;
    if (stack) {
        key.labels =
            cpprof__label_set_number(cpprof__heap.tree, cpprof__self.labels);
        number = bucket_of(&key);
    }
    if (number) {
        cpprof__wait_count_more(number, count, delay_ns);
        return number;
    }
    add_relaxed(&block->head.lost_count[profile], count);
    add_relaxed(&block->head.lost_ns[profile], delay_ns);
    cpprof__mirror(&block->head, sizeof block->head);
    return 0;
}

bool
cpprof__waits_open(struct cpprof__waits *waits, void *copy, size_t n)
{
    if (n < sizeof(struct block) || __builtin_memcmp(copy, MAGIC, 8) != 0)
        return false;
    waits->head = copy;
    waits->buckets = (void *)((char *)copy + offsetof(struct block, buckets));
    return true;
}

uint32_t
cpprof__waits_n_buckets(const struct cpprof__waits *waits)
{
    uint32_t n = waits->head ? load_acquire(&waits->head->n_buckets) : 0;

    return n < CPPROF__WAIT_BUCKETS ? n : CPPROF__WAIT_BUCKETS;
}

bool
cpprof__waits_read(const struct cpprof__waits *waits, uint32_t number,
                   struct cpprof__wait_bucket *bucket)
{
    const struct cpprof__wait_bucket *from = &waits->buckets[number];

    if (number == 0 || number >= CPPROF__WAIT_BUCKETS)
        return false;
    bucket->count = load_acquire(&from->count);
    bucket->delay_ns = load_acquire(&from->delay_ns);
    if (!bucket->count && !bucket->delay_ns)
        return false;
    bucket->stack = from->stack;
    bucket->labels = from->labels;
    bucket->profile = from->profile;
    bucket->pad = 0;
    return bucket->profile < CPPROF__WAIT_PROFILES;
}

void
cpprof__wait_buckets_forked(void)
{
    uint32_t i, n = cpprof__waits_n_buckets(&cpprof__waits);

    for (i = 1; i < n; i++) {
        cpprof__waits.buckets[i].count = 0;
        cpprof__waits.buckets[i].delay_ns = 0;
    }
    for (i = 0; n > 1 && i < CPPROF__WAIT_PROFILES; i++) {
        cpprof__waits.head->lost_count[i] = 0;
        cpprof__waits.head->lost_ns[i] = 0;
    }
}
