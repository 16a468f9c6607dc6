/* SPDX-License-Identifier: MIT */
/*
 * A cache of what the unwinder found out about program counters: a table of
 * fixed size, shared by all threads, without a lock.
 *
 * A slot is guarded by a version that is odd while the slot is written. The
 * reader takes the version, the row, and the version again, and uses the row
 * only if nothing changed: a row made of two halves is never used. A writer
 * that finds a slot odd leaves it alone, so nobody ever waits; a thread that
 * dies while it writes loses that one slot.
 *
 * The version's upper half is the generation the row was made in. Forgetting
 * counts the generation up: rows from before, and rows that a walk under way
 * adds later, no longer match.
 */
#ifndef COLLECT_SIGNAL_ROW_CACHE_H
#define COLLECT_SIGNAL_ROW_CACHE_H

#include "arch/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Pairs of rows, one pair to a cache line: 256 KiB of .bss in all, touched as
 * needed. More holds the call sites of larger programs; a program that uses
 * more than fit pays a search (about 70 ns) for each frame that is missing.
 */
#define CPPROF__ROW_PAIRS 4096u

/*
 * How to get from a frame to its caller. Offsets are in bytes from a base,
 * which is sp or fp; so that the three addresses do not wait for each other.
 */
struct cpprof__unwind_row {
    uint32_t how;    /* CPPROF__ROW_*; 0 and the first two bits: plain rows */
    int32_t cfa_off; /* the CFA, which becomes the caller's sp */
    int32_t ra_off;  /* where the return address is */
    int32_t fp_off;  /* where the caller's fp is; else as ra_off */
};

enum {
    CPPROF__ROW_BY_FP = 1u << 0,    /* the base is fp, not sp */
    CPPROF__ROW_FP_SAVED = 1u << 1, /* otherwise fp is the caller's, too */
    CPPROF__ROW_PLAIN_MAX = 3,
    /* A realigned frame: the CFA stands at fp + cfa_off, is the base, and the
     * caller's fp stands at fp + fp_off. */
    CPPROF__ROW_REALIGNED = 1u << 2,
    CPPROF__ROW_FP_LOST = 1u << 3, /* nobody knows the caller's fp */
    CPPROF__ROW_RA_LINK = 1u << 4, /* the return address is in a register */
    /* The rest stand alone. */
    CPPROF__ROW_FULL = 1u << 8,    /* needs the call-frame information itself */
    CPPROF__ROW_ROOT = 2u << 8,    /* there is no caller */
    CPPROF__ROW_SIGNAL = 3u << 8,  /* the code that signal handlers return to */
    CPPROF__ROW_NONE = 4u << 8,    /* code without call-frame information */
    CPPROF__ROW_JUNK = 5u << 8,    /* not code, or not where a call returns */
    CPPROF__ROW_ENTRY = 6u << 8,   /* a function's first byte: returned to by
                                    * a stack that was made by hand */
    CPPROF__ROW_MISSING = 7u << 8, /* never stored: not found in the cache */
    CPPROF__ROW_ALONE = 0xffu << 8
};

/* A row in two registers. */
struct cpprof__packed_row {
    uint64_t how_cfa; /* how, cfa_off << 32 */
    uint64_t ra_fp;   /* ra_off, fp_off << 32 */
};

static inline struct cpprof__packed_row
cpprof__row_pack(const struct cpprof__unwind_row *row)
{
    return (struct cpprof__packed_row){
        row->how | (uint64_t)(uint32_t)row->cfa_off << 32,
        (uint32_t)row->ra_off | (uint64_t)(uint32_t)row->fp_off << 32};
}

static inline struct cpprof__unwind_row
cpprof__row_unpack(struct cpprof__packed_row w)
{
    return (struct cpprof__unwind_row){
        (uint32_t)w.how_cfa, (int32_t)(w.how_cfa >> 32), (int32_t)w.ra_fp,
        (int32_t)(w.ra_fp >> 32)};
}

struct cpprof__row_slot {
    uint64_t version; /* generation << 32 | number of writes << 1 | writing */
    uint64_t ra;
    struct cpprof__packed_row row;
};

#define CPPROF__HIDDEN __attribute__((visibility("hidden")))

extern CPPROF__HIDDEN struct cpprof__row_slot cpprof__rows[CPPROF__ROW_PAIRS]
                                                          [2];

/* The generation of rows that may be used now; never 0. */
extern CPPROF__HIDDEN uint32_t cpprof__row_generation;

/*
 * Functions are aligned and many look alike, so that the low 4 bits of where
 * calls return to may be the same for a whole module: the 12 above are folded
 * in. A walk waits for this sum: shifted before it is masked, it takes 3
 * cycles.
 */
static inline struct cpprof__row_slot *
cpprof__row_pair(uint64_t ra)
{
    uint64_t at = (ra << 6 ^ ra << 2) & (CPPROF__ROW_PAIRS - 1) << 6;

    return (struct cpprof__row_slot *)((char *)cpprof__rows + at);
}

/* Take the row of a slot, if it is ra's and whole. */
static inline bool
cpprof__row_take(const struct cpprof__row_slot *slot, uint64_t ra,
                 uint32_t generation, struct cpprof__packed_row *row)
{
    uint64_t version = load_acquire(&slot->version);

    if (load_acquire(&slot->ra) != ra)
        return false;
    row->how_cfa = load_acquire(&slot->row.how_cfa);
    row->ra_fp = load_acquire(&slot->row.ra_fp);
    return load_relaxed(&slot->version) == version &&
           (version & ~(uint64_t)0xfffffffe) == (uint64_t)generation << 32;
}

/*
 * The row of the code before return address ra (of a frame that was
 * interrupted: pc + 1). Safety: AS.
 */
static inline bool
cpprof__row_find(uint64_t ra, uint32_t generation,
                 struct cpprof__packed_row *row)
{
    const struct cpprof__row_slot *pair = cpprof__row_pair(ra);

    return cpprof__row_take(&pair[0], ra, generation, row) ||
           cpprof__row_take(&pair[1], ra, generation, row);
}

/* Keep a row; may do nothing. Safety: AS. */
void
cpprof__row_store(uint64_t ra, uint32_t generation,
                  const struct cpprof__unwind_row *row);

#endif
