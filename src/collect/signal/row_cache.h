/* SPDX-License-Identifier: MIT */
/*
 * What the unwinder found out about program counters, kept for the next walk:
 * a table of fixed size, shared by all threads, without a lock.
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
#define CPPROF__ROW_PAIRS 4096

/* Where the CFA of a frame is. */
enum cpprof__row_cfa {
    CPPROF__ROW_SP = 1,   /* sp + cfa_off */
    CPPROF__ROW_FP,       /* fp + cfa_off */
    CPPROF__ROW_FP_DEREF, /* what stands at fp + cfa_off */
    CPPROF__ROW_FULL,     /* needs the call-frame information itself */
    CPPROF__ROW_ROOT,     /* there is no caller */
    CPPROF__ROW_SIGNAL,   /* the code that a signal handler returns to */
    CPPROF__ROW_NONE,     /* code without call-frame information */
    CPPROF__ROW_JUNK      /* not code, or not where a call returns to */
};

/* Where the caller's frame pointer is. */
enum cpprof__row_fp {
    CPPROF__ROW_FP_SAME,
    CPPROF__ROW_FP_AT_CFA, /* at CFA + fp_off */
    CPPROF__ROW_FP_AT_FP,  /* at fp + fp_off */
    CPPROF__ROW_FP_LOST
};

/* Where the return address is. */
enum cpprof__row_ra {
    CPPROF__ROW_RA_AT_CFA, /* at CFA + ra_off */
    CPPROF__ROW_RA_LINK    /* still in the link register */
};

struct cpprof__row {
    uint8_t cfa; /* enum cpprof__row_cfa */
    uint8_t fp;  /* enum cpprof__row_fp */
    uint8_t ra;  /* enum cpprof__row_ra */
    uint8_t zero;
    int32_t cfa_off; /* bytes, as the other two */
    int32_t ra_off;
    int32_t fp_off;
};

struct cpprof__row_slot {
    uint64_t version; /* generation << 32 | number of writes << 1 | writing */
    uint64_t pc;
    uint64_t words[2]; /* a struct cpprof__row */
};

extern struct cpprof__row_slot cpprof__rows[CPPROF__ROW_PAIRS][2];

/* The generation of rows that may be used now; never 0. */
extern uint32_t cpprof__row_generation;

/* Code is dense: its low bits differ most. The shift tells modules apart,
 * which are aligned to pages. */
static inline struct cpprof__row_slot *
cpprof__row_pair(uint64_t pc)
{
    return cpprof__rows[(pc ^ pc >> 12) & (CPPROF__ROW_PAIRS - 1)];
}

/* Take the row of a slot, if it is pc's and whole. */
static inline bool
cpprof__row_take(const struct cpprof__row_slot *slot, uint64_t pc,
                 uint32_t generation, struct cpprof__row *row)
{
    uint64_t version = load_acquire(&slot->version);
    uint64_t words[2];

    if (load_acquire(&slot->pc) != pc)
        return false;
    words[0] = load_acquire(&slot->words[0]);
    words[1] = load_acquire(&slot->words[1]);
    __builtin_memcpy(row, words, sizeof *row);
    return load_relaxed(&slot->version) == version &&
           version >> 32 == generation && (version & 1) == 0;
}

/* Safety: AS. */
static inline bool
cpprof__row_find(uint64_t pc, uint32_t generation, struct cpprof__row *row)
{
    const struct cpprof__row_slot *pair = cpprof__row_pair(pc);

    return cpprof__row_take(&pair[0], pc, generation, row) ||
           cpprof__row_take(&pair[1], pc, generation, row);
}

/* Keep a row; may do nothing. Safety: AS. */
void
cpprof__row_store(uint64_t pc, uint32_t generation,
                  const struct cpprof__row *row);

#endif
