/* SPDX-License-Identifier: MIT */
/*
 * Reads the headers of chunks, as they are in the memory of one moment. Nothing
 * in them is trusted: a thread may have been at work there, and what looks like
 * a heap may be none. No step leads beyond the end that is given.
 */
#include "collect/leak/glibc.h"

#define PAGE 4096u

#define IN_USE  1u /* of the chunk before */
#define MAPPED  2u
#define FLAGS   7u
#define MINIMUM 32u

/* A heap has its last chunk, top, or two words that close it, which are no
 * chunks, and whose second has the size 0 or 16. */
#define FENCE 16u

struct chunk {
    uint64_t before; /* the size of the chunk before, if that is free */
    uint64_t size;
};

static uint64_t
size_of(uintptr_t at)
{
    return ((const struct chunk *)at)->size & ~(uint64_t)FLAGS;
}

static bool
is_in_use(uintptr_t next)
{
    return ((const struct chunk *)next)->size & IN_USE;
}

static bool
is_fence(uintptr_t at, uintptr_t end)
{
    return end - at <= 2 * FENCE && size_of(at) <= FENCE;
}

/* The chunk behind a chunk, or end; 0: it is none. */
static uintptr_t
step(uintptr_t at, uintptr_t end)
{
    uint64_t size = size_of(at);
    uintptr_t next = at + size;

    if (size < MINIMUM || size % 16 || size > end - at)
        return 0;
    if (end - next < sizeof(struct chunk))
        return next == end ? end : 0;
    if (!is_in_use(next) && ((const struct chunk *)next)->before != size)
        return 0;
    return next;
}

static bool
walk(uintptr_t at, uintptr_t end, uintptr_t *top)
{
    while (at < end) {
        *top = at;
        if (is_fence(at, end))
            return true;
        at = step(at, end);
        if (!at)
            return false;
    }
    return true;
}

bool
cpprof__glibc_find(uintptr_t from, uintptr_t last, uintptr_t end,
                   uintptr_t *first, uintptr_t *top)
{
    uintptr_t at;

    for (at = (from + 15) & ~(uintptr_t)15; at <= last && at + MINIMUM <= end;
         at += 16)
        if (is_in_use(at) && walk(at, end, top)) {
            *first = at;
            return true;
        }
    return false;
}

/* ---- lists of what seems to be in use ---------------------------------- */

/* A thread's cache: how many chunks, and the first block, of 32, 48, ... bytes
 * (glibc 2.32 to 2.41). */
#define CACHE_BINS 64
struct cache {
    uint16_t n[CACHE_BINS];
    uint64_t first[CACHE_BINS];
};

#define FAST_BINS 10

static uint64_t
bin_size(unsigned bin)
{
    return MINIMUM + 16 * (uint64_t)bin;
}

/* Like one, at a glance; all of them empty is not worth a look. */
static bool
may_be_cache(uintptr_t at)
{
    const struct cache *cache = (const struct cache *)(at + CPPROF__CHUNK_HEAD);
    bool has_any = false;
    unsigned i;

    if (size_of(at) != sizeof *cache + 16)
        return false;
    for (i = 0; i < CACHE_BINS; i++) {
        if (!cache->n[i] != !cache->first[i] || cache->first[i] % 16)
            return false;
        has_any |= cache->n[i];
    }
    return has_any;
}

void
cpprof__glibc_note_arena(struct cpprof__glibc_free_lists *lists, uintptr_t top)
{
    if (lists->n_arenas < sizeof lists->arenas / sizeof *lists->arenas)
        lists->arenas[lists->n_arenas++] = top;
}

/* A pointer to the next is kept with the bits of where it stands, so no list of
 * a program's own, such as a pool of nodes, passes for one. Before 2.32 it was
 * a pointer: there nothing is followed. */
static uintptr_t
next_free(uintptr_t block)
{
    return *(const uint64_t *)block ^ block >> 12;
}

/* From block on: is each a chunk of that size, and the last one followed by
 * none? Then how many there are, up to max; else 0. */
static size_t
count_free(const struct cpprof__marks *m, uintptr_t block, uint64_t size,
           size_t max)
{
    size_t n;

    for (n = 0; block; n++) {
        if (n == max || !cpprof__marks_find(m, block).area ||
            size_of(block - CPPROF__CHUNK_HEAD) != size)
            return 0;
        block = next_free(block);
    }
    return n;
}

/* A list that a thread was changing is no whole one, and stays as it is: all of
 * it counts as in use. n: how many there must be; 0: as many as there are. */
static void
add_free_list(struct cpprof__marks *m, uintptr_t first, uint64_t size, size_t n)
{
    size_t found = count_free(m, first, size, n ? n : m->n_blocks);
    uintptr_t block;

    if (!found || (n && found != n))
        return;
    for (block = first; block; block = next_free(block))
        cpprof__marks_add_gap(cpprof__marks_area(m, block), block);
}

void
cpprof__glibc_add_free(struct cpprof__marks *m,
                       const struct cpprof__glibc_free_lists *lists)
{
    size_t i;
    unsigned k;

    for (i = 0; i < lists->n_caches; i++) {
        const struct cache *cache =
            (const struct cache *)(lists->caches[i] + CPPROF__CHUNK_HEAD);

        for (k = 0; k < CACHE_BINS; k++)
            if (cache->n[k])
                add_free_list(m, cache->first[k], bin_size(k), cache->n[k]);
    }
    for (i = 0; i < lists->n_arenas; i++) {
        const uint64_t *chunks = (const uint64_t *)lists->arenas[i] - FAST_BINS;

        for (k = 0; k < FAST_BINS; k++)
            if (chunks[k])
                add_free_list(m, chunks[k] + CPPROF__CHUNK_HEAD, bin_size(k),
                              0);
    }
}

/* ---- heaps ------------------------------------------------------------ */

void
cpprof__glibc_add(struct cpprof__marks *m, uintptr_t first, uintptr_t end,
                  struct cpprof__glibc_free_lists *lists)
{
    struct cpprof__area *area =
        cpprof__marks_add_area(m, first + CPPROF__CHUNK_HEAD, end, 4);
    uintptr_t at = first, next;

    while (area && at < end && !is_fence(at, end)) {
        next = step(at, end);
        if (!next || next == end || !is_in_use(next))
            cpprof__marks_add_gap(area, at + CPPROF__CHUNK_HEAD);
        else
            cpprof__marks_add_block(m, area, at + CPPROF__CHUNK_HEAD);
        if (next && may_be_cache(at) &&
            lists->n_caches < sizeof lists->caches / sizeof *lists->caches)
            lists->caches[lists->n_caches++] = at;
        if (!next)
            return;
        at = next;
    }
    if (area && at + CPPROF__CHUNK_HEAD < end)
        cpprof__marks_add_gap(area, at + CPPROF__CHUNK_HEAD);
}

uintptr_t
cpprof__glibc_arena(uintptr_t start, uintptr_t limit, uintptr_t *from,
                    struct cpprof__glibc_free_lists *lists)
{
    const struct {
        uintptr_t arena, before, size, writable;
    } *info = (const void *)start;
    uintptr_t arena_heap;

    if (start % CPPROF__ARENA_ALIGNMENT || limit - start < PAGE)
        return 0;
    arena_heap = info->arena & ~(CPPROF__ARENA_ALIGNMENT - 1);
    if (info->size % PAGE || !info->size || info->size > limit - start ||
        info->size > CPPROF__ARENA_ALIGNMENT || info->writable < info->size ||
        info->writable > CPPROF__ARENA_ALIGNMENT || (info->arena & 15) ||
        info->arena - arena_heap < 0x20 || info->arena - arena_heap > 0x40 ||
        (info->before && info->before % CPPROF__ARENA_ALIGNMENT) ||
        (arena_heap == start) != !info->before)
        return 0;
    /* The first heap has the arena in it. */
    *from = arena_heap == start ? info->arena + 0x800 : start + 0x20;
    if (arena_heap == start)
        cpprof__glibc_note_arena(lists, info->arena + CPPROF__ARENA_BEFORE);
    return start + info->size;
}

uintptr_t
cpprof__glibc_mapped(uintptr_t address, uintptr_t start, uintptr_t limit)
{
    uintptr_t at = address - CPPROF__CHUNK_HEAD;
    const struct chunk *chunk = (const struct chunk *)at;
    uint64_t size;

    if (address % 16 || at < start || at >= limit)
        return 0;
    size = chunk->size & ~(uint64_t)FLAGS;
    if (!(chunk->size & MAPPED) || chunk->before > at - start ||
        (at - chunk->before) % PAGE || size > limit - at ||
        (chunk->before + size) % PAGE || size < MINIMUM)
        return 0;
    return at + size;
}

/* A list that is empty points to itself; a head lies 16 bytes before its
 * pointers, so that of the first list is the field top. */
bool
cpprof__glibc_is_arena(const uint64_t *at, size_t n, uintptr_t heap,
                       uintptr_t heap_end)
{
    const uint64_t *lists = at + 2;
    unsigned i;

    if (n < CPPROF__ARENA_BYTES)
        return false;
    for (i = 0; i < 126; i++) {
        uintptr_t head = (uintptr_t)(at + 2 * i);
        uint64_t next = lists[2 * i], before = lists[2 * i + 1];
        bool is_empty = next == head && before == head;

        if (!is_empty && (next - heap >= heap_end - heap ||
                          before - heap >= heap_end - heap))
            return false;
    }
    return true;
}
