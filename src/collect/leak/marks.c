/* SPDX-License-Identifier: MIT */
/*
 * Marks blocks. What is reached first is put on a stack and looked into later.
 * Between the stack and the look there is a ring of addresses whose memory is
 * being fetched, because most blocks of a large heap are in no cache.
 *
 * Invariants: a block is put on the stack once, when its bit is set; so the
 * stack never holds more than there are blocks, and that much is mapped. The
 * bit of a gap is set from the beginning.
 */
#include "collect/leak/marks.h"

#include "arch/regs.h"
#include "own/sort.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Processors and kernels have no addresses of programs above; allocators and
 * run times put tags there. */
#define ADDRESS_MASK ((UINT64_C(1) << CPPROF__ADDRESS_BITS) - 1)

/* Tunable: blocks whose memory is fetched before the first is looked into. */
#define AHEAD 32

#define AREAS_MAX 65535

void *
cpprof__leak_memory(size_t n)
{
    long p = syscall(SYS_mmap, NULL, n ? n : 1, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == -1 ? NULL : (void *)p;
}

/* ---- areas ------------------------------------------------------------ */

void
cpprof__marks_make(struct cpprof__marks *m, size_t max_areas)
{
    memset(m, 0, sizeof *m);
    m->max_areas = max_areas < AREAS_MAX ? max_areas : AREAS_MAX;
    m->areas = cpprof__leak_memory(m->max_areas * sizeof *m->areas);
    m->failed = !m->areas;
}

size_t
cpprof__area_granules(const struct cpprof__area *area)
{
    return ((area->end - area->start - 1) >> area->shift) + 1;
}

struct cpprof__area *
cpprof__marks_add_area(struct cpprof__marks *m, uintptr_t start, uintptr_t end,
                       unsigned shift)
{
    struct cpprof__area *area = &m->areas[m->n_areas];
    size_t words, sums;

    if (m->failed || m->n_areas == m->max_areas || start >= end) {
        m->failed = true;
        return NULL;
    }
    *area = (struct cpprof__area){.start = start, .end = end, .shift = shift};
    words = cpprof__area_granules(area) / 64 + 1;
    sums = words / 64 + 1;
    area->first = cpprof__leak_memory((3 * words + sums) * sizeof(uint64_t));
    if (!area->first) {
        m->failed = true;
        return NULL;
    }
    area->marked = area->first + words;
    area->pointed = area->marked + words;
    area->sums = area->pointed + words;
    m->n_areas++;
    return area;
}

static void
set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void
add_first(struct cpprof__area *area, uintptr_t address)
{
    size_t granule = (address - area->start) >> area->shift;

    set_bit(area->first, granule);
    set_bit(area->sums, granule / 64);
}

void
cpprof__marks_add_block(struct cpprof__marks *m, struct cpprof__area *area,
                        uintptr_t address)
{
    add_first(area, address);
    m->n_blocks++;
}

void
cpprof__marks_add_end(struct cpprof__marks *m, struct cpprof__area *area,
                      uintptr_t address)
{
    size_t words = cpprof__area_granules(area) / 64 + 1;

    if (address % (UINT64_C(1) << area->shift) || address >= area->end)
        return; /* pointers to it are pointers into the block's last granule */
    if (!area->ends)
        area->ends = cpprof__leak_memory(words * sizeof *area->ends);
    if (area->ends)
        set_bit(area->ends, (address - area->start) >> area->shift);
    else
        m->failed = true;
}

void
cpprof__marks_add_gap(struct cpprof__area *area, uintptr_t address)
{
    add_first(area, address);
    set_bit(area->marked, (address - area->start) >> area->shift);
}

static int
by_start(const void *a, const void *b)
{
    const struct cpprof__area *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

void
cpprof__marks_ready(struct cpprof__marks *m)
{
    if (m->failed)
        return;
    cpprof__sort(m->areas, m->n_areas, sizeof *m->areas, by_start);
    m->max_stack = m->n_blocks + 1;
    m->stack = cpprof__leak_memory(m->max_stack * sizeof *m->stack);
    m->failed = !m->stack;
    m->last = m->areas;
    if (m->n_areas) {
        m->lo = m->areas[0].start;
        m->span = m->areas[m->n_areas - 1].end - m->lo;
    }
}

/* ---- from an address to its block ------------------------------------- */

struct cpprof__area *
cpprof__marks_area(const struct cpprof__marks *m, uintptr_t p)
{
    size_t from = 0, to = m->n_areas;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (m->areas[middle].end <= p)
            from = middle + 1;
        else
            to = middle;
    }
    return from < m->n_areas && p >= m->areas[from].start ? &m->areas[from]
                                                          : NULL;
}

/* The last granule up to this one at which a block begins; SIZE_MAX: none. */
static inline size_t
find_first(const struct cpprof__area *area, size_t granule)
{
    size_t word = granule / 64, sum;
    uint64_t bits = area->first[word] & (~UINT64_C(0) >> (63 - granule % 64));

    if (bits)
        return word * 64 + 63 - (size_t)__builtin_clzll(bits);
    if (!word)
        return SIZE_MAX;
    word--;
    sum = word / 64;
    bits = area->sums[sum] & (~UINT64_C(0) >> (63 - word % 64));
    while (!bits) {
        if (!sum)
            return SIZE_MAX;
        bits = area->sums[--sum];
    }
    word = sum * 64 + 63 - (size_t)__builtin_clzll(bits);
    return word * 64 + 63 - (size_t)__builtin_clzll(area->first[word]);
}

size_t
cpprof__area_next(const struct cpprof__area *area, size_t from)
{
    size_t n = cpprof__area_granules(area), word = from / 64, n_sums, sum;
    uint64_t bits;

    if (from >= n)
        return n;
    bits = area->first[word] & (~UINT64_C(0) << (from % 64));
    if (bits)
        return word * 64 + (size_t)__builtin_ctzll(bits);
    word++;
    n_sums = (n / 64 + 1) / 64 + 1;
    sum = word / 64;
    if (sum >= n_sums)
        return n;
    bits = area->sums[sum] & (~UINT64_C(0) << (word % 64));
    while (!bits) {
        if (++sum >= n_sums)
            return n;
        bits = area->sums[sum];
    }
    word = sum * 64 + (size_t)__builtin_ctzll(bits);
    return word * 64 + (size_t)__builtin_ctzll(area->first[word]);
}

struct cpprof__block
cpprof__marks_find(const struct cpprof__marks *m, uintptr_t address)
{
    struct cpprof__block block = {cpprof__marks_area(m, address), 0};

    if (!block.area)
        return block;
    block.granule = (address - block.area->start) >> block.area->shift;
    if (!cpprof__bit(block.area->first, block.granule) ||
        block.area->start + (block.granule << block.area->shift) != address)
        block.area = NULL;
    return block;
}

bool
cpprof__marks_is_marked(struct cpprof__block block)
{
    return cpprof__bit(block.area->marked, block.granule);
}

bool
cpprof__marks_is_direct(struct cpprof__block block)
{
    return !cpprof__bit(block.area->pointed, block.granule);
}

/* ---- marking ---------------------------------------------------------- */

static void
push(struct cpprof__marks *m, const struct cpprof__area *area, size_t granule)
{
    if (m->n_stack == m->max_stack) {
        m->failed = true;
        return;
    }
    m->stack[m->n_stack++] = (uint64_t)(area - m->areas)
                                 << CPPROF__ADDRESS_BITS |
                             (area->start + (granule << area->shift));
}

static void
mark(struct cpprof__marks *m, const struct cpprof__area *area, size_t granule)
{
    if (granule == SIZE_MAX || cpprof__bit(area->marked, granule))
        return;
    set_bit(area->marked, granule);
    push(m, area, granule);
}

/* Which of two blocks a word is about that is the end of one and the beginning
 * of the other, nobody can know. */
static void
hit(struct cpprof__marks *m, uintptr_t p)
{
    const struct cpprof__area *area = m->last;
    size_t granule, first;

    if (p - area->start >= area->end - area->start) {
        area = cpprof__marks_area(m, p);
        if (!area)
            return;
        m->last = area;
    }
    granule = (p - area->start) >> area->shift;
    first = find_first(area, granule);
    if (m->sets_pointed) {
        if (first != SIZE_MAX && !cpprof__bit(area->marked, first) &&
            area->start + (first << area->shift) != m->self)
            set_bit(area->pointed, first);
        return;
    }
    mark(m, area, first);
    if (area->ends && cpprof__bit(area->ends, granule) && granule &&
        p == area->start + (granule << area->shift))
        mark(m, area, find_first(area, granule - 1));
}

static inline void
look_at_words(struct cpprof__marks *m, const uint64_t *at, size_t n)
{
    const uintptr_t lo = m->lo, span = m->span;
    size_t i;

    for (i = 0; i < n; i++) {
        uintptr_t p = at[i] & ADDRESS_MASK;

        if (p - lo < span)
            hit(m, p);
    }
}

/* What it holds. */
static void
look_into(struct cpprof__marks *m, const struct cpprof__area *area,
          uintptr_t start)
{
    size_t granule = (start - area->start) >> area->shift;
    size_t next = cpprof__area_next(area, granule + 1);
    uintptr_t end = area->start + (next << area->shift);
    const uint64_t *words = (const uint64_t *)start;

    if (end > area->end || next == cpprof__area_granules(area))
        end = area->end;
    look_at_words(m, words, (end - start) / 8);
}

/* Until the stack is empty. */
static void
flood(struct cpprof__marks *m)
{
    uint64_t ring[AHEAD];
    size_t n = 0, at = 0;

    while (n || m->n_stack) {
        uint64_t entry;

        while (n < AHEAD && m->n_stack) {
            entry = m->stack[--m->n_stack];
            __builtin_prefetch((const void *)(entry & ADDRESS_MASK));
            ring[(at + n++) % AHEAD] = entry;
        }
        entry = ring[at];
        at = (at + 1) % AHEAD;
        n--;
        look_into(m, &m->areas[entry >> CPPROF__ADDRESS_BITS],
                  entry & ADDRESS_MASK);
    }
}

void
cpprof__marks_from(struct cpprof__marks *m, const void *address, size_t n)
{
    if (m->failed || !m->n_areas)
        return;
    look_at_words(m, address, n);
    flood(m);
}

/* ---- direct and indirect ---------------------------------------------- */

/* f for each block that is not marked, in the order of addresses. */
static void
for_lost(struct cpprof__marks *m,
         void (*f)(struct cpprof__marks *m, struct cpprof__area *area,
                   size_t granule))
{
    size_t i, at, n;

    for (i = 0; i < m->n_areas; i++) {
        struct cpprof__area *area = &m->areas[i];

        n = cpprof__area_granules(area);
        for (at = cpprof__area_next(area, 0); at < n;
             at = cpprof__area_next(area, at + 1))
            if (!cpprof__bit(area->marked, at))
                f(m, area, at);
    }
}

static void
point(struct cpprof__marks *m, struct cpprof__area *area, size_t granule)
{
    m->self = area->start + (granule << area->shift);
    look_into(m, area, m->self);
}

static void
flood_from(struct cpprof__marks *m, struct cpprof__area *area, size_t granule)
{
    set_bit(area->marked, granule);
    push(m, area, granule);
    flood(m);
}

static void
flood_direct(struct cpprof__marks *m, struct cpprof__area *area, size_t granule)
{
    if (!cpprof__bit(area->pointed, granule))
        flood_from(m, area, granule);
}

static void
flood_cycle(struct cpprof__marks *m, struct cpprof__area *area, size_t granule)
{
    area->pointed[granule / 64] &= ~(UINT64_C(1) << (granule % 64));
    flood_from(m, area, granule);
}

/* All are marked. */
static void
leave_out(struct cpprof__marks *m, struct cpprof__area *area, size_t granule)
{
    (void)m;
    set_bit(area->marked, granule);
}

void
cpprof__marks_leave_out(struct cpprof__marks *m)
{
    for_lost(m, leave_out);
}

void
cpprof__marks_take_in(struct cpprof__block block)
{
    if (block.area)
        block.area->marked[block.granule / 64] &=
            ~(UINT64_C(1) << (block.granule % 64));
}

void
cpprof__marks_part(struct cpprof__marks *m)
{
    if (m->failed)
        return;
    m->sets_pointed = true;
    for_lost(m, point);
    m->sets_pointed = false;
    for_lost(m, flood_direct);
    for_lost(m, flood_cycle);
}
