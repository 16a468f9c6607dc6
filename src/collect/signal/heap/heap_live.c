/* SPDX-License-Identifier: MIT */
/*
 * The live blocks: adds, finds and removes an entry by its address, from any
 * thread, without a lock.
 *
 * Protocol. A free entry is taken from a list by compare-and-swap; a tag in
 * the list's head changes with every exchange, so that a head which returned
 * to the same entry does not look unchanged. The entry is filled before its
 * number is stored into a slot of the index, with release order. The owner of
 * the address, who is the only one that may free it, sets the slot back to 0
 * by compare-and-swap and then gives the entry back. A line that is full gets
 * a next line; the loser of that race wastes one.
 *
 * Invariants: an address is in the index at most once for each heap; a search
 * by the owner finds its slot, whatever other threads do to theirs; the filter
 * never says no for a live block.
 */
#include "collect/signal/heap/heap_live.h"

#include "arch/clock.h"
#include "arch/mix.h"
#include "collect/signal/heap/exempt.h"
#include "collect/signal/tables/mirror.h"

#define NUMBER_BITS 22
#define NUMBER_MASK (CPPROF__HEAP_LIVE - 1)

#define LINE_SLOTS 15

/* Bytes of addresses that share a line, in a region; a power of two. */
#define NEIGHBOUR_BITS 7

#define SMALL_BITS 11 /* 128 KiB */
#define LARGE_BITS 17 /* 8 MiB */

/* Blocks up to which the small part is used: 8 to a line. At the default rate
 * that is 8 GiB in use. */
#define SMALL_MAX (8u << SMALL_BITS)

/* Lines for overflow: room for twice as many blocks. */
#define BLOCKS_TO_A_LINE 8u
#define MORE_LINES       (CPPROF__HEAP_LIVE / BLOCKS_TO_A_LINE)

_Static_assert(CPPROF__HEAP_LIVE == 1u << NUMBER_BITS, "numbers fit a slot");

/* Slots are also looked at four by four. */
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));

struct line {
    union {
        struct {
            uint32_t slots[LINE_SLOTS];
            uint32_t next; /* line of .more, or 0 */
        };
        four fours[4];
    };
};

struct part {
    struct line *lines;
    unsigned bits;
};

struct index {
    uint64_t n_live[2]; /* blocks in each part */
    uint32_t n_more;    /* lines of .more given out; line 0 never is */
    uint32_t more_bound;
    uint8_t pad[40];
    struct line small[1u << SMALL_BITS];
    struct line large[1u << LARGE_BITS];
    struct line more[MORE_LINES];
};
_Static_assert(sizeof(struct line) == 64, "one cache line");
_Static_assert(offsetof(struct index, small) == 64, "lines are aligned");

uint8_t *cpprof__heap_filter;

size_t
cpprof__live_index_bytes(uint32_t bound)
{
    return offsetof(struct index, more) +
           bound / BLOCKS_TO_A_LINE * sizeof(struct line);
}

void
cpprof__live_set_bound(struct cpprof__heap *heap, uint32_t bound)
{
    struct index *index = heap->live_index;

    store_release(&index->more_bound, bound / BLOCKS_TO_A_LINE);
    store_release(&heap->live_bound, bound);
}

static struct part
part_of(struct index *index, unsigned i)
{
    if (i == 0)
        return (struct part){index->small, SMALL_BITS};
    return (struct part){index->large, LARGE_BITS};
}

static struct line *
line_of(struct part part, uintptr_t address)
{
    uint64_t at = address >> NEIGHBOUR_BITS;
    uint64_t region = at >> part.bits;

    at += cpprof__spread_u64(region, 32);
    return &part.lines[at & ((1u << part.bits) - 1)];
}

/* A slot's upper bits; not 0, which is an empty slot's. */
static uint32_t
tag_of(uintptr_t address, uint16_t which)
{
    uint64_t x = address ^ (uint64_t)which << 57;
    uint32_t tag = (uint32_t)cpprof__spread_u64(x ^ x >> 32, 32) & ~NUMBER_MASK;

    return tag ? tag : 1u << NUMBER_BITS;
}

/* The filter counts up to 254. A byte that reaches 255 stays so for ever,
 * because nobody knows its true count any more. */
static void
filter_add(uintptr_t address)
{
    uint8_t *at = cpprof__heap_filter_of(address);
    uint8_t n = load_relaxed(at);

    while (n < 255 && !cas_acq_rel(at, &n, (uint8_t)(n + 1)))
        ;
}

static void
filter_remove(uintptr_t address)
{
    uint8_t *at = cpprof__heap_filter_of(address);
    uint8_t n = load_relaxed(at);

    while (n > 0 && n < 255 && !cas_acq_rel(at, &n, (uint8_t)(n - 1)))
        ;
}

/* A free entry; 0: there is none. The tag makes a list that came back to the
 * same first entry another one. */
static uint32_t
take_entry(struct cpprof__heap *heap)
{
    struct cpprof__heap_head *head = heap->head;
    uint64_t first = load_acquire(&head->free_block);
    uint32_t number;

    while ((number = (uint32_t)first) != 0) {
        uint64_t next = load_relaxed(&heap->blocks[number].bytes);

        next = ((first >> 32) + 1) << 32 | (uint32_t)next;
        if (cas_acq_rel(&head->free_block, &first, next))
            return number;
    }
    if (load_relaxed(&head->n_blocks) >= load_acquire(&heap->live_bound))
        return 0;
    number = add_relaxed(&head->n_blocks, 1);
    cpprof__mirror(&head->n_blocks, 8);
    return number < load_acquire(&heap->live_bound) ? number : 0;
}

static void
give_entry(struct cpprof__heap *heap, uint32_t number)
{
    uint64_t *list = &heap->head->free_block;
    uint64_t first = load_relaxed(list);
    uint64_t mine;

    do {
        store_relaxed(&heap->blocks[number].bytes, (uint32_t)first);
        mine = ((first >> 32) + 1) << 32 | number;
    } while (!cas_acq_rel(list, &first, mine));
}

/* Each field is stored with release order: a reader that sees one of them sees
 * its .use, or a later one. */
static void
fill_entry(struct cpprof__heap_block *to, const struct cpprof__heap_block *from)
{
    store_relaxed(&to->use, ((load_relaxed(&to->use) >> 8) + 1) << 8 |
                                (from->use & 0xff));
    store_release(&to->bytes, from->bytes);
    store_release(&to->weight, from->weight);
    store_release(&to->bucket, from->bucket);
    store_release(&to->address, from->address);
    cpprof__mirror(to, sizeof *to);
}

static void
clear_entry(struct cpprof__heap *heap, uint32_t number)
{
    struct cpprof__heap_block *entry = &heap->blocks[number];

    store_release(&entry->address, 0);
    cpprof__mirror(entry, sizeof *entry);
    give_entry(heap, number);
}

/* The line after this one, made if there is none; NULL: there is no room. */
static struct line *
next_line(struct index *index, struct line *line)
{
    uint32_t next = load_acquire(&line->next);

    if (!next) {
        uint32_t made;

        uint32_t bound = load_acquire(&index->more_bound);

        if (load_relaxed(&index->n_more) + 1 >= bound)
            return NULL;
        made = add_relaxed(&index->n_more, 1) + 1;
        if (made >= bound)
            return NULL;
        /* The thread that loses this race wastes a line. */
        if (cas_acq_rel(&line->next, &next, made))
            next = made;
    }
    return &index->more[next];
}

static bool
put_slot(struct index *index, struct line *line, uint32_t slot)
{
    unsigned i;

    for (; line; line = next_line(index, line)) {
        for (i = 0; i < LINE_SLOTS; i++) {
            uint32_t empty = 0;

            if (!load_relaxed(&line->slots[i]) &&
                cas_acq_rel(&line->slots[i], &empty, slot))
                return true;
        }
    }
    return false;
}

/* By libc's function, as end_peak() in heap_buckets.c, and for its reasons. */
static void
note_birth(struct cpprof__heap *heap, uint32_t number)
{
    if (!heap->born_s)
        return;
    cpprof__hook_self.exempt++;
    store_relaxed(
        &heap->born_s[number],
        (uint32_t)(cpprof__now_ns(CLOCK_MONOTONIC_COARSE) / CPPROF__NS_PER_S));
    cpprof__hook_self.exempt--;
}

bool
cpprof__live_add(struct cpprof__heap *heap,
                 const struct cpprof__heap_block *block)
{
    struct index *index = heap->live_index;
    unsigned i = load_relaxed(&index->n_live[0]) >= SMALL_MAX;
    uint32_t number = take_entry(heap);
    uint32_t slot = tag_of(block->address, block->use & 0xff) | number;

    if (!number)
        return false;
    fill_entry(&heap->blocks[number], block);
    note_birth(heap, number);
    filter_add(block->address);
    add_relaxed(&index->n_live[i], 1);
    if (put_slot(index, line_of(part_of(index, i), block->address), slot))
        return true;
    add_relaxed(&index->n_live[i], -1);
    filter_remove(block->address);
    clear_entry(heap, number);
    return false;
}

static bool
is_block(const struct cpprof__heap *heap, uint32_t slot, uintptr_t address,
         uint16_t which)
{
    const struct cpprof__heap_block *b = &heap->blocks[slot & NUMBER_MASK];

    return load_relaxed(&b->address) == address &&
           (load_relaxed(&b->use) & 0xff) == which;
}

/*
 * Could one of a line's slots have this tag? Four are compared at once. Other
 * threads may be writing their slots meanwhile. But the wanted slot was written
 * before its address got here, and stays until its owner, who is asking, takes
 * it out. Wrong values in other slots do no harm.
 */
__attribute__((no_sanitize("thread"))) static inline bool
may_hold(const struct line *line, uint32_t tag)
{
    const four bits = {~NUMBER_MASK, ~NUMBER_MASK, ~NUMBER_MASK, ~NUMBER_MASK};
    const four tags = {tag, tag, tag, tag};
    four same = (four)((line->fours[0] & bits) == tags) |
                (four)((line->fours[1] & bits) == tags) |
                (four)((line->fours[2] & bits) == tags) |
                (four)((line->fours[3] & bits) == tags);
    two any = (two)same;

    return (any[0] | any[1]) != 0;
}

static __attribute__((noinline)) uint32_t *
slot_in(const struct cpprof__heap *heap, struct line *line, uintptr_t address,
        uint16_t which)
{
    uint32_t tag = tag_of(address, which);
    unsigned i;

    for (i = 0; i < LINE_SLOTS; i++) {
        uint32_t slot = load_acquire(&line->slots[i]);

        if ((slot & ~NUMBER_MASK) == tag &&
            is_block(heap, slot, address, which))
            return &line->slots[i];
    }
    return NULL;
}

/* The slot of a block in one part, or NULL. */
__attribute__((always_inline)) static inline uint32_t *
find_slot(const struct cpprof__heap *heap, unsigned part, uintptr_t address,
          uint16_t which)
{
    struct index *index = heap->live_index;
    uint32_t tag = tag_of(address, which);
    struct line *line = line_of(part_of(index, part), address);

    for (;;) {
        uint32_t next = load_acquire(&line->next);
        uint32_t *found;

        if (may_hold(line, tag) &&
            (found = slot_in(heap, line, address, which)) != NULL)
            return found;
        if (!next)
            return NULL;
        line = &index->more[next];
    }
}

/* Both parts are looked into; first the larger one, while it is in use. */
static inline uint32_t *
find(const struct cpprof__heap *heap, uintptr_t address, uint16_t which,
     unsigned *part)
{
    const struct index *index = heap->live_index;
    uint32_t *found = NULL;

    *part = 1;
    if (load_relaxed(&index->n_live[1]))
        found = find_slot(heap, 1, address, which);
    if (!found && load_relaxed(&index->n_live[0])) {
        *part = 0;
        found = find_slot(heap, 0, address, which);
    }
    return found;
}

static void
take_out(struct cpprof__heap *heap, unsigned part, uintptr_t address,
         uint32_t number)
{
    struct index *index = heap->live_index;

    add_relaxed(&index->n_live[part], -1);
    filter_remove(address);
    clear_entry(heap, number);
}

bool
cpprof__live_remove(struct cpprof__heap *heap, uintptr_t address,
                    uint16_t which, struct cpprof__heap_block *block)
{
    unsigned part;
    uint32_t *at = find(heap, address, which, &part);
    uint32_t slot = at ? load_relaxed(at) : 0;

    if (!slot)
        return false;
    *block = heap->blocks[slot & NUMBER_MASK];
    /* If the program frees a block twice at once, which is an error, one of
     * them takes it out. */
    if (!cas_acq_rel(at, &slot, 0))
        return false;
    take_out(heap, part, address, slot & NUMBER_MASK);
    return true;
}

bool
cpprof__live_has(const struct cpprof__heap *heap, uintptr_t address,
                 uint16_t which)
{
    unsigned part;

    return find(heap, address, which, &part) != NULL;
}
