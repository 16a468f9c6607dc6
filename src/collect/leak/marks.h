/* SPDX-License-Identifier: MIT */
/*
 * Which blocks of memory a pointer leads to: a mark-and-sweep over areas, of
 * which each consists of blocks without a gap. For the child of leak.h: nothing
 * here allocates but by mmap(), takes a lock or calls what may.
 *
 * An area has a bit for each granule that a block begins at. A word of memory
 * is taken for a pointer if its lower bits (arch/regs.h) are an address within
 * an area; it leads to the block that begins there or before. So pointers into
 * a block count, tagged ones too, and so does one past the end of a block:
 * where another block begins right there, it leads to both.
 */
#ifndef COLLECT_LEAK_MARKS_H
#define COLLECT_LEAK_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__area {
    uintptr_t start, end;
    unsigned shift;  /* a granule has 1 << shift bytes */
    uint64_t *first; /* a bit for each granule: a block begins here */
    uint64_t *sums;  /* a bit for each word of .first: it is not 0 */
    uint64_t *marked;
    uint64_t *pointed;
    uint64_t *ends; /* where a block begins, another one ends; or NULL */
};

struct cpprof__marks {
    struct cpprof__area *areas; /* in the order of addresses when ready */
    size_t n_areas;
    size_t max_areas;
    uint64_t n_blocks;
    bool failed; /* there was no memory for something: no result */
    /* Private. */
    uintptr_t lo, span;
    const struct cpprof__area *last;
    uint64_t *stack;
    size_t n_stack, max_stack;
    bool sets_pointed;
    uintptr_t self;
};

/* A block, or none: .area is NULL. */
struct cpprof__block {
    const struct cpprof__area *area;
    size_t granule;
};

/* Zeroed memory that is never given back; NULL: there is none. */
void *
cpprof__leak_memory(size_t n);

void
cpprof__marks_make(struct cpprof__marks *m, size_t max_areas);

/* An area without blocks, or NULL. Areas do not overlap. */
struct cpprof__area *
cpprof__marks_add_area(struct cpprof__marks *m, uintptr_t start, uintptr_t end,
                       unsigned shift);
/* A block begins at an address of the area; or what is none: it is marked from
 * the beginning, and never looked into. */
void
cpprof__marks_add_block(struct cpprof__marks *m, struct cpprof__area *area,
                        uintptr_t address);
void
cpprof__marks_add_gap(struct cpprof__area *area, uintptr_t address);
/* A block ends at an address of the area, and another one may begin there. */
void
cpprof__marks_add_end(struct cpprof__marks *m, struct cpprof__area *area,
                      uintptr_t address);
/* All areas and blocks are there. */
void
cpprof__marks_ready(struct cpprof__marks *m);

/* Mark what n words at an address lead to, and all that leads to. */
void
cpprof__marks_from(struct cpprof__marks *m, const void *address, size_t n);

/* The area that an address is in, or NULL. Until they are ready: if they were
 * added in order. */
struct cpprof__area *
cpprof__marks_area(const struct cpprof__marks *m, uintptr_t address);

/* The block that begins exactly there. */
struct cpprof__block
cpprof__marks_find(const struct cpprof__marks *m, uintptr_t address);
bool
cpprof__marks_is_marked(struct cpprof__block block);

/* Before the next: of what is not marked, only these count. */
void
cpprof__marks_leave_out(struct cpprof__marks *m);
void
cpprof__marks_take_in(struct cpprof__block block);

/* After all roots were looked at and asked for what is not marked: tell apart
 * what nothing lost points to, and one block of each cycle (direct), from what
 * these lead to. Everything is marked after it. */
void
cpprof__marks_part(struct cpprof__marks *m);
bool
cpprof__marks_is_direct(struct cpprof__block block);

/* The next granule from `from` on at which a block begins; the number of
 * granules if there is none. */
size_t
cpprof__area_next(const struct cpprof__area *area, size_t from);
size_t
cpprof__area_granules(const struct cpprof__area *area);

static inline bool
cpprof__bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

#endif
