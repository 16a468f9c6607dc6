/* SPDX-License-Identifier: MIT */
/*
 * The sums of waits by profile, stack and label set: found or added without a
 * lock, as the buckets of the heap are.
 *
 * The block is reserved by the first rate that is not 0. Counts are fixed-point
 * fractions, and the delay is added with release order, so whoever sees it sees
 * the key.
 *
 * A bucket holds its stack and its label set in the tree, until it is recycled
 * (tables/entries.h). Invariants: bucket 0 is not used; a bucket changes its
 * key only when it is recycled; a forked child sets all sums to 0 and keeps the
 * keys.
 */
#include "collect/signal/waits/wait_buckets.h"

#include "arch/atomic.h"
#include "arch/place.h"
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
    /* Private. */
    uint32_t index[WINDOW_INDEX_SLOTS(LEVELS)];
    struct cpprof__entries entries;
    bool gives_up_stacks; /* recycling */
} * reserved;

struct cpprof__waits cpprof__waits;

size_t
cpprof__waits_bytes(void)
{
    return sizeof(struct block);
}

static void
recycle(void);

/* Two that come first at once do the same; later ones find it done. */
bool
cpprof__waits_reserve(void)
{
    uint32_t none = 0;
    struct reserved *p;

    if (load_acquire(&cpprof__waits.head))
        return true;
    p = cpprof__reserve_once((void **)&reserved,
                             sizeof *reserved +
                                 cpprof__entries_bytes(CPPROF__WAIT_BUCKETS));
    if (!p)
        return false;
    __builtin_memcpy(p->block.head.magic, MAGIC, sizeof p->block.head.magic);
    cas_acq_rel(&p->block.head.n_buckets, &none, 1); /* 0 is none */
    cpprof__entries_make(&p->entries, CPPROF__WAIT_BUCKETS,
                         &p->block.head.n_buckets, p + 1);
    cpprof__recycle_add(recycle);
    store_relaxed(&cpprof__waits.buckets, p->block.buckets);
    store_release(&cpprof__waits.head, &p->block.head);
    return true;
}

static uint32_t
make_bucket(void *table, const void *wanted)
{
    struct reserved *r = table;
    const struct cpprof__wait_bucket *key = wanted;
    uint32_t number = cpprof__entries_take(&r->entries);
    struct cpprof__wait_bucket *b = &r->block.buckets[number];

    if (!number)
        return 0;
    b->labels = key->labels;
    b->profile = key->profile;
    store_release(&b->stack, key->stack);
    cpprof__tree_hold(b->stack);
    cpprof__tree_hold(b->labels);
    cpprof__mirror(&r->block.head, sizeof r->block.head);
    return number;
}

static bool
is_key(const void *table, uint32_t number, const void *wanted)
{
    const struct cpprof__wait_bucket *b =
        &((const struct reserved *)table)->block.buckets[number];
    const struct cpprof__wait_bucket *key = wanted;

    return b->stack == key->stack && b->labels == key->labels &&
           b->profile == key->profile;
}

static const struct window_kind kind = {LEVELS, NUMBER_BITS, is_key,
                                        make_bucket};

static uint64_t
hash_of(const struct cpprof__wait_bucket *key)
{
    uint64_t which = (uint64_t)key->labels << 32 | key->profile;

    return cpprof__mix_u64(cpprof__mix_u64(which) + key->stack);
}

/* The number of a key's bucket; 0: there is no room. */
static uint32_t
bucket_of(struct reserved *r, const struct cpprof__wait_bucket *key)
{
    uint32_t number =
        window_find_or_make(&kind, r->index, hash_of(key), r, key);

    if (number)
        cpprof__entries_use(&r->entries, number);
    return number;
}

static void
lose(struct cpprof__waits_head *head, enum cpprof__wait_profile profile,
     uint64_t count, uint64_t delay_ns)
{
    add_relaxed(&head->lost_count[profile], count);
    add_relaxed(&head->lost_ns[profile], delay_ns);
    cpprof__mirror(head, sizeof *head);
}

static void
count_in(struct cpprof__wait_bucket *b, uint64_t count, uint64_t delay_ns)
{
    /* Release, so that a thread that sees either sees the key, too. */
    __atomic_fetch_add(&b->delay_ns, delay_ns, __ATOMIC_RELEASE);
    __atomic_fetch_add(&b->count, count, __ATOMIC_RELEASE);
    cpprof__mirror(b, sizeof *b);
}

/* The caller got the number so lately that the bucket was not recycled since.
 */
void
cpprof__wait_count_more(uint32_t bucket, uint64_t count, uint64_t delay_ns)
{
    struct reserved *r = load_acquire(&reserved);

    cpprof__entries_use(&r->entries, bucket);
    count_in(&r->block.buckets[bucket], count, delay_ns);
}

uint32_t
cpprof__wait_count(enum cpprof__wait_profile profile, uint32_t stack,
                   uint64_t count, uint64_t delay_ns)
{
    struct cpprof__wait_bucket key = {.stack = stack, .profile = profile};
    struct reserved *r = load_acquire(&reserved);
    uint32_t number = 0;

    if (!r || !r->entries.state)
        return 0;
    if (stack) {
        key.labels =
            cpprof__label_set_number(cpprof__heap.tree, cpprof__self.labels);
        number = bucket_of(r, &key);
    }
    if (number)
        count_in(&r->block.buckets[number], count, delay_ns);
    else
        lose(&r->block.head, profile, count, delay_ns);
    cpprof__recycle();
    return number;
}

/* ---- recycling -------------------------------------------------------- */

static bool
is_there(void *table, uint32_t number)
{
    return load_acquire(
               &((struct reserved *)table)->block.buckets[number].stack) != 0;
}

static bool
has_labels(const struct cpprof__wait_bucket *b)
{
    return b->labels && b->labels != CPPROF__LABELS_LOST;
}

/* Is the bucket to stay? Buckets with label sets are given up first, others
 * only if that does not make enough room. */
static bool
is_wanted(void *table, uint32_t number)
{
    struct reserved *r = table;

    return !r->gives_up_stacks && !has_labels(&r->block.buckets[number]);
}

static void
remove_bucket(void *table, uint32_t number)
{
    struct reserved *r = table;

    window_remove(&kind, r->index, hash_of(&r->block.buckets[number]), number);
}

/* Clear a bucket. Its sums go to the same stack with lost labels, or are
 * counted as lost. */
static void
clear_bucket(void *table, uint32_t number)
{
    struct reserved *r = table;
    struct cpprof__wait_bucket *b = &r->block.buckets[number], was = *b;
    const struct cpprof__wait_bucket key = {.stack = was.stack,
                                            .labels = CPPROF__LABELS_LOST,
                                            .profile = was.profile};
    uint32_t to = 0;

    if (has_labels(&was) && was.count)
        to = bucket_of(r, &key);
    if (to)
        count_in(&r->block.buckets[to], was.count, was.delay_ns);
    else
        lose(&r->block.head, was.profile, was.count, was.delay_ns);
    b->count = b->delay_ns = 0;
    b->labels = b->profile = 0;
    store_release(&b->stack, 0u);
    cpprof__mirror(b, sizeof *b);
    cpprof__tree_drop(was.stack);
    cpprof__tree_drop(was.labels);
}

static void
recycle(void)
{
    static const struct cpprof__entries_kind buckets = {
        is_there, is_wanted, remove_bucket, clear_bucket};

    reserved->gives_up_stacks =
        cpprof__entries_left(&reserved->entries) < CPPROF__WAIT_BUCKETS / 4 ||
        cpprof__tree_left() < CPPROF__TREE_NODES / 4;
    cpprof__entries_sweep(&reserved->entries, &buckets, reserved);
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
    const struct cpprof__waits_head *head = load_acquire(&waits->head);
    uint32_t n = head ? load_acquire(&head->n_buckets) : 0;

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

bool
cpprof__waits_have_any(enum cpprof__wait_profile profile)
{
    uint32_t i, n = cpprof__waits_n_buckets(&cpprof__waits);
    struct cpprof__wait_bucket bucket;

    for (i = 1; i < n; i++)
        if (cpprof__waits_read(&cpprof__waits, i, &bucket) &&
            bucket.profile == (uint32_t)profile && bucket.count)
            return true;
    return n && load_relaxed(&cpprof__waits.head->lost_count[profile]);
}

CPPROF__FIRST_STEP void
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
