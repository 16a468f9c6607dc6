/* SPDX-License-Identifier: MIT */
/*
 * Decides which allocations are sampled, and puts the other files of this
 * folder together. A thread's count-down ends at a sample or, if that is far
 * away, at a point where the distance is drawn again. The exponential
 * distribution has no memory, so drawing again changes nothing. So a count-down
 * is never longer than FAR, and a change of the rate can put all threads behind
 * the floor, however often that happens. Invariant: a distance is always drawn
 * before its outcome is known; none is drawn a second time because of its
 * outcome.
 */
#include "collect/signal/heap/heap.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "collect/signal/heap/heap_buckets.h"
#include "collect/signal/heap/heap_random.h"
#include "collect/signal/heap/heap_room.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/heap/probes.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/thread.h"

#include <time.h>

/* FAR: bytes to the next check of a thread that is not sampled. STEP: how much
 * a change of the rate raises the floor. A thread that sleeps through 2^29
 * changes could be taken for one that saw the last change. */
#define FAR  ((uint64_t)1 << 32)
#define STEP (2 * FAR)

/* Where the count-down itself may have wrapped. */
#define HUGE_BYTES ((uint64_t)1 << 62)

int64_t cpprof__heap_floor CPPROF__AT_START = INT64_MIN / 4;
void (*cpprof__heap_rate_changed)(void) CPPROF__AT_START;

/* What cpprof__heap_set_rate() was told; also in the head, once that is there.
 */
static int64_t heap_rate CPPROF__AT_START = CPPROF__HEAP_RATE;
static uint32_t is_making CPPROF__AT_START;
static uint32_t is_made CPPROF__AT_START;
static uint64_t begun_ns; /* also in the head */

static void
set_bounds(uint32_t live)
{
    cpprof__live_set_bound(&cpprof__heap, live);
    cpprof__buckets_set_bound(&cpprof__heap, cpprof__heap_buckets_for(live));
}

void
cpprof__heap_make(void *block, void *private_memory, struct cpprof__tree *tree,
                  uint32_t live)
{
    struct cpprof__heap *heap = &cpprof__heap;
    char *private_bytes = private_memory;

    cpprof__heap_seed_process();
    cpprof__hook_walk_reserve(tree);
    cpprof__heap_lay_out(heap, block);
    heap->tree = tree;
    heap->live_index = private_memory;
    cpprof__buckets_make(heap,
                         private_bytes + cpprof__heap_bucket_index_offset());
    heap->born_s = (void *)(private_bytes + cpprof__heap_born_offset());
    set_bounds(live);
    store_release(&cpprof__heap_filter,
                  (uint8_t *)private_bytes + cpprof__heap_filter_offset());
    heap->head->n_blocks = 1;
    heap->head->n_buckets = 1;
    cpprof__recycle_add(cpprof__buckets_recycle);
    store_relaxed(&heap->head->rate, load_relaxed(&heap_rate));
    store_relaxed(&heap->head->begun_ns, load_relaxed(&begun_ns));
    store_release(&is_made, 1);
    store_release(&cpprof__heap_floor, (int64_t)STEP);
}

static bool
make_room(uint32_t live)
{
    char *block = cpprof__hook_walk_reserve(cpprof__heap.tree)
                      ? cpprof__heap_map(live)
                      : NULL;

    if (block)
        cpprof__heap_make(block, block + cpprof__heap_bytes(),
                          cpprof__heap.tree, live);
    return block != NULL;
}

/* If two threads come at once, one makes them and the other goes on without. */
bool
cpprof__heap_reserve(void)
{
    uint32_t nobody = 0, live = cpprof__heap_live_for(load_relaxed(&heap_rate));
    bool has_room = load_acquire(&is_made);

    if (has_room && load_relaxed(&cpprof__heap.live_bound) >= live)
        return true;
    if (!cpprof__heap.tree || !cas_acq_rel(&is_making, &nobody, 1))
        return has_room;
    if (!load_acquire(&is_made))
        has_room = make_room(live);
    else if (load_relaxed(&cpprof__heap.live_bound) < live &&
             cpprof__heap_map_more(&cpprof__heap, live))
        set_bounds(live);
    store_release(&is_making, 0u);
    return has_room;
}

CPPROF__FIRST_STEP int64_t
cpprof__heap_set_rate(int64_t bytes)
{
    int64_t before;

    if (bytes < 0)
        return load_relaxed(&heap_rate);
    if (bytes > CPPROF__HEAP_RATE_MAX)
        bytes = CPPROF__HEAP_RATE_MAX;
    before = swap_acq_rel(&heap_rate, bytes);
    if (before == bytes || (!load_acquire(&is_made) && !bytes))
        return before;
    if (!cpprof__heap_reserve())
        return before;
    store_relaxed(&cpprof__heap.head->rate, bytes);
    if (before && load_relaxed(&cpprof__heap.head->n_buckets) > 1)
        add_relaxed(&cpprof__heap.head->n_rates, 1);
    cpprof__mirror(cpprof__heap.head,
                   offsetof(struct cpprof__heap_head, n_blocks));
    /* Stored after the rate: whoever sees this floor sees this rate, or a later
     * one whose floor will follow. */
    __atomic_fetch_add(&cpprof__heap_floor, (int64_t)STEP, __ATOMIC_RELEASE);
    if (cpprof__heap_rate_changed)
        cpprof__heap_rate_changed();
    return before;
}

/* Count down `bytes` from here. */
static void
count_down(struct cpprof__hook_self *self, uint64_t bytes)
{
    self->at_point = bytes <= FAR;
    self->left = (int64_t)((uint64_t)self->floor + (bytes < FAR ? bytes : FAR));
}

/* Is a sample within the next n bytes? Then the rate, else 0. Counts down what
 * follows them. */
static int64_t
draw(struct cpprof__hook_self *self, uint64_t n)
{
    int64_t rate = self->rate;
    uint64_t distance = cpprof__heap_distance(&self->random, rate);

    if (distance >= n) {
        count_down(self, distance == UINT64_MAX ? distance : distance - n);
        return 0;
    }
    count_down(self, cpprof__heap_distance(&self->random, rate));
    return rate;
}

/*
 * Is an allocation of n bytes, which cpprof__heap_due() has counted, sampled?
 * Then the rate that it was sampled with, else 0; and what follows is counted
 * down. A signal handler may have allocated since, and have found the end of
 * the count-down first: then it is decided anew.
 */
static int64_t
decide(struct cpprof__hook_self *self, uint64_t n)
{
    int64_t floor = load_acquire(&cpprof__heap_floor);
    int64_t rate = self->rate;
    int64_t beyond;

    if (!self->random)
        self->random = cpprof__hook_seed(self);
    if (self->floor != floor || n > HUGE_BYTES) {
        self->floor = floor;
        self->rate = load_relaxed(&heap_rate);
        return draw(self, n ? n : 1);
    }
    if (n == 0)
        self->left--;
    beyond = (int64_t)((uint64_t)floor - (uint64_t)self->left);
    if (beyond <= 0)
        return n ? draw(self, n) : 0;
    if (!self->at_point)
        return draw(self, (uint64_t)beyond);
    count_down(self, cpprof__heap_distance(&self->random, rate));
    return rate;
}

static void
lose(struct cpprof__heap *heap, uint64_t bytes, uint64_t weight)
{
    struct cpprof__heap_head *head = heap->head;

    add_relaxed(&head->n_lost, 1);
    add_relaxed(&head->lost_bytes, bytes * weight);
    add_relaxed(&head->lost_objects, weight);
    cpprof__mirror(&head->n_lost, 3 * sizeof head->n_lost);
}

static uint32_t
find_bucket(struct cpprof__heap *heap, uint32_t stack, uint64_t bytes,
            uint16_t which)
{
    struct cpprof__heap_key key = {stack, 0, cpprof__heap_size_class(bytes),
                                   which};

    if (!stack)
        return 0;
    if (load_relaxed(&cpprof__wants_labels))
        key.labels = cpprof__label_set_number(heap->tree, cpprof__self.labels);
    return cpprof__heap_bucket_of(heap, &key);
}

static void
count_use(struct cpprof__heap *heap, const struct cpprof__heap_block *block,
          int sign)
{
    cpprof__heap_count_use(heap, block->bucket, sign * (int64_t)block->weight,
                           sign * (int64_t)(block->weight * block->bytes));
}

/* A block that is counted as allocated is in use from now on. */
static void
follow(struct cpprof__heap *heap, const struct cpprof__heap_block *block)
{
    if (cpprof__live_add(heap, block)) {
        count_use(heap, block, 1);
        if (!(block->use & 0xff))
            cpprof__probe_alloc(block->address, block->bytes,
                                block->weight * block->bytes >>
                                    CPPROF__HEAP_FRACTION_BITS);
    } else {
        add_relaxed(&heap->head->n_unfollowed, 1);
        cpprof__mirror(&heap->head->n_unfollowed, 8);
    }
}

static void
record(const void *address, uint64_t bytes,
       const struct cpprof__heap_ahead *ahead, uint16_t which)
{
    struct cpprof__heap *heap = &cpprof__heap;
    struct cpprof__heap_block block = {
        .address = (uintptr_t)address, .bytes = bytes, .use = which};

    if (bytes > CPPROF__HEAP_BYTES_MAX)
        block.bytes = CPPROF__HEAP_BYTES_MAX;
    block.weight = cpprof__heap_weight(&cpprof__hook_self.random, block.bytes,
                                       ahead->rate);
    /* A block at this address was freed without our knowledge. */
    if (cpprof__heap_may_be_sampled(address))
        cpprof__heap_remove(address, which, NULL);
    block.bucket = find_bucket(heap, ahead->stack, block.bytes, which);
    /* Counted before it is live. A reader that reads in the other order never
     * finds more in use than was allocated. */
    if (block.bucket)
        cpprof__heap_count_alloc(heap, block.bucket, block.bytes, block.weight);
    if (block.bucket)
        follow(heap, &block);
    else
        lose(heap, block.bytes, block.weight);
    cpprof__recycle();
}

/* The rate that an allocation is sampled with, or 0. */
static int64_t
decide_here(uint64_t n, uintptr_t frame)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;
    int64_t rate;

    if (!load_acquire(&is_made)) {
        self->left = 0;
        return 0;
    }
    rate = decide(self, n);
    return rate && !cpprof__is_exempt(frame) ? rate : 0;
}

/* Exempt, so that a signal handler that allocates meanwhile is not sampled. */
static inline __attribute__((always_inline)) void
sample(const void *address, size_t n, uint16_t heap, bool is_at_rest)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct cpprof__heap_ahead ahead = {.rate = decide_here(n, frame)};
    struct cpprof__exempt before;

    if (!ahead.rate || !address || heap >= CPPROF__HEAP_HEAPS)
        return;
    before = cpprof__exempt_begin(frame);
    ahead.stack = cpprof__hook_walk(cpprof__heap.tree, is_at_rest);
    record(address, n, &ahead, heap);
    cpprof__exempt_end(&before);
}

CPPROF__HOOK void
cpprof__heap_sample(const void *address, size_t n, uint16_t heap)
{
    sample(address, n, heap, true);
}

CPPROF__HOOK void
cpprof__heap_sample_anywhere(const void *address, size_t n, uint16_t heap)
{
    sample(address, n, heap, false);
}

CPPROF__HOOK void
cpprof__heap_sample_begin(struct cpprof__heap_ahead *ahead, size_t n)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct cpprof__exempt before;

    ahead->rate = decide_here(n, frame);
    if (!ahead->rate)
        return;
    before = cpprof__exempt_begin(frame);
    ahead->stack = cpprof__hook_walk(cpprof__heap.tree, true);
    cpprof__exempt_end(&before);
}

void
cpprof__heap_sample_end(const struct cpprof__heap_ahead *ahead,
                        const void *address, size_t n)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct cpprof__exempt before;

    if (!ahead->rate || !address)
        return;
    before = cpprof__exempt_begin(frame);
    record(address, n, ahead, 0);
    cpprof__exempt_end(&before);
}

bool
cpprof__heap_remove(const void *address, uint16_t heap,
                    struct cpprof__heap_removed *removed)
{
    struct cpprof__heap_block block = {0};
    bool found =
        load_acquire(&is_made) && address &&
        cpprof__live_remove(&cpprof__heap, (uintptr_t)address, heap, &block);

    if (found)
        count_use(&cpprof__heap, &block, -1);
    if (found && !heap)
        cpprof__probe_free((uintptr_t)address);
    if (removed)
        removed->block = block;
    return found;
}

void
cpprof__heap_restore(const struct cpprof__heap_removed *removed)
{
    const struct cpprof__heap_block *block = &removed->block;

    if (block->address)
        follow(&cpprof__heap, block);
}

void
cpprof__heap_resize(const struct cpprof__heap_removed *removed,
                    const void *address, size_t n)
{
    struct cpprof__heap *heap = &cpprof__heap;
    struct cpprof__heap_block block = removed->block;
    uint16_t which = (uint16_t)(block.use & 0xff);

    block.address = (uintptr_t)address;
    block.bytes = n < CPPROF__HEAP_BYTES_MAX ? n : CPPROF__HEAP_BYTES_MAX;
    block.bucket = find_bucket(heap, heap->buckets[block.bucket].stack,
                               block.bytes, which);
    if (!block.bucket) {
        lose(heap, block.bytes, block.weight);
        return;
    }
    cpprof__heap_count_alloc(heap, block.bucket, block.bytes, block.weight);
    follow(heap, &block);
}

void
cpprof__heap_begin_anew(void)
{
    struct cpprof__heap *heap = &cpprof__heap;
    struct cpprof__heap_block block;
    uint32_t i;

    store_relaxed(&begun_ns, cpprof__clock_ns(CLOCK_REALTIME));
    if (!load_acquire(&is_made))
        return;
    store_relaxed(&heap->head->begun_ns, load_relaxed(&begun_ns));
    for (i = 1; i < cpprof__heap_n_blocks(heap); i++)
        if (cpprof__heap_read_block(heap, i, &block))
            cpprof__heap_remove((const void *)(uintptr_t)block.address,
                                (uint16_t)block.use, NULL);
    cpprof__buckets_begin_anew(heap);
}

CPPROF__FIRST_STEP void
cpprof__heap_forked(void)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;

    store_relaxed(&is_making, 0u);
    cpprof__recycle_forked();
    cpprof__hook_walk_forked();
    cpprof__heap_seed_process();
    self->random = cpprof__hook_seed(self);
    /* The thread draws at its next allocation, as one that has not drawn yet.
     */
    self->floor = 0;
    self->left = 0;
}
