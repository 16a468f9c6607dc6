/* SPDX-License-Identifier: MIT */
/*
 * The heap of glibc from its own headers (malloc/malloc.c): chunks lie one
 * behind the other, and each begins with its size. A walk counts only if it
 * ends exactly where the heap ends, and each free chunk's size stands behind it
 * as well. For the child of leak.h. Source: glibc 2.26 to 2.41.
 */
#ifndef COLLECT_LEAK_GLIBC_H
#define COLLECT_LEAK_GLIBC_H

#include "collect/leak/marks.h"

/* Room of a chunk before the block that a program sees. */
#define CPPROF__CHUNK_HEAD 16

/* Find the first chunk, in from to `last`, of a heap that ends at end: true
 * with *first if all is walked from there. *top is the chunk at the end. */
bool
cpprof__glibc_find(uintptr_t from, uintptr_t last, uintptr_t end,
                   uintptr_t *first, uintptr_t *top);

/* What a thread's cache (tcache_perthread_struct) or a fastbin has in its lists
 * is free, but its header says that it is in use. Here is where these lists
 * begin; those that find no room are left to be blocks. */
struct cpprof__glibc_free_lists {
    uintptr_t caches[8192];
    size_t n_caches;
    uintptr_t arenas[1024]; /* their field top */
    size_t n_arenas;
};

/* Its blocks as an area; free chunks are gaps. Notes what may be caches. */
void
cpprof__glibc_add(struct cpprof__marks *m, uintptr_t first, uintptr_t end,
                  struct cpprof__glibc_free_lists *lists);

/* When the marks are ready: what is in these lists is gaps, too. */
void
cpprof__glibc_add_free(struct cpprof__marks *m,
                       const struct cpprof__glibc_free_lists *lists);

/* Does a thread arena's heap begin here, in memory that is there up to limit?
 * Then its end, and the first address where a chunk may begin; else 0. Notes
 * the arena if that lies in it. */
uintptr_t
cpprof__glibc_arena(uintptr_t start, uintptr_t limit, uintptr_t *from,
                    struct cpprof__glibc_free_lists *lists);
#define CPPROF__ARENA_ALIGNMENT (UINT64_C(1) << 26)

/* The end of a chunk that has a mapping of its own, whose block is at address,
 * in memory that is there from start to limit; 0: there is none. */
uintptr_t
cpprof__glibc_mapped(uintptr_t address, uintptr_t start, uintptr_t limit);

void
cpprof__glibc_note_arena(struct cpprof__glibc_free_lists *lists, uintptr_t top);

/* Are the words from `at` on those of main_arena, from its field top on, whose
 * lists of free chunks point into the heap? n: bytes from there on. */
bool
cpprof__glibc_is_arena(const uint64_t *at, size_t n, uintptr_t heap,
                       uintptr_t heap_end);
/* Bytes of the lists before and from that field on. */
#define CPPROF__ARENA_BEFORE 0x60
#define CPPROF__ARENA_BYTES  (16 + 254 * 8)

#endif
