/* SPDX-License-Identifier: MIT */
/*
 * Memory for tables of a fixed size: address space at the first profile that
 * needs them, and memory page by page as they are touched. A process in which
 * nothing is profiled has none of it. And what tables in a file need.
 *
 * Safety: AS, lock-free; also in a child made by fork at any moment.
 */
#ifndef COLLECT_SIGNAL_RESERVE_H
#define COLLECT_SIGNAL_RESERVE_H

#include "arch/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)
/* Bytes that are reserved, here and by who else says so: they are in the
 * process's data, but are not the program's. */
extern uint64_t cpprof__reserved_bytes;
#pragma GCC visibility pop

/* Where n bytes are to be mapped, apart from the program's (arch/apart.h). */
uintptr_t
cpprof__table_place(size_t n);

/* The program has set a limit on memory or files. They are read once otherwise:
 * a filter of the program may end it for that call later, in a handler or at
 * its end. Safety: AS. */
void
cpprof__limits_read(void);

/* The program has all that is mapped from now on locked (mlockall() with
 * MCL_FUTURE), or not. Tables are not: it would be memory for all of each, and
 * the kernel lets no thread map anything while it fills them. False again where
 * a filter may end the program for munlock(). Safety: AS. */
void
cpprof__maps_are_locked(bool locked);

/* mmap(), of memory that is not locked; a negative errno. Safety: AS. */
long
cpprof__map(uintptr_t at, size_t n, int protection, int flags, long fd,
            size_t offset);

/* Private memory is all zeros again; false: it is as it was. Safety: AS. */
bool
cpprof__empty(void *p, size_t n);

/* n bytes of zeros; NULL: there is no room, or they would take what the program
 * may need: of a limit on its data a quarter is for tables, and of one on its
 * address space half. Without huge pages: a few entries here and there would
 * take megabytes. */
void *
cpprof__reserve(size_t n);
void
cpprof__unreserve(void *p, size_t n);

/* A part of n bytes that are kept together, by offsets that are multiples of
 * CPPROF__PIECE_BYTES, or the end of all. */
struct cpprof__piece {
    size_t start, end;
};
#define CPPROF__PIECE_BYTES ((size_t)1 << 16) /* the largest page */

/* The same for n bytes of which only these pieces are there, in order and
 * without overlap; others may be added later, if nobody else has taken their
 * place. */
void *
cpprof__reserve_pieces(size_t n, const struct cpprof__piece *pieces,
                       unsigned n_pieces);
bool
cpprof__reserve_more(void *base, const struct cpprof__piece *pieces,
                     unsigned n_pieces);

/* Why there was no room, as far as a limit says it; or NULL. */
const char *
cpprof__reserve_limit(void);

/* May stacks of threads of ours have so many bytes? With the tables they have
 * half of either limit. */
bool
cpprof__has_room_for_stacks(size_t n);

/* Reserve it once: a thread that finds a pointer there uses that. */
static inline void *
cpprof__reserve_once(void **place, size_t n)
{
    void *there = load_acquire(place), *p;

    if (there)
        return there;
    p = cpprof__reserve(n);
    if (!p || cas_acq_rel(place, &there, p))
        return p;
    cpprof__unreserve(p, n);
    return there;
}

/*
 * Back the n bytes at offset `at` of a file, which is mapped shared at base,
 * with memory, so that touching them cannot fault on a full file system. Before
 * Linux 5.14 madvise does not know that, and the file is extended by its name:
 * a program may have closed any descriptor that was kept. Returns 0 or an
 * errno.
 */
int
cpprof__fill_hole(char *base, size_t at, size_t n, const char *path);

/* Is that longer than this process may make a file? Then the kernel would send
 * SIGXFSZ. */
bool
cpprof__is_too_long(uint64_t n);

#endif
