/* SPDX-License-Identifier: MIT */
/*
 * The entries of a table that hooks add to: which numbers are free, and which
 * entries are not needed any more.
 *
 *   take     a number that was never given out, or else one of the free list.
 *   round    the age of all tables together: it goes on when an eighth of one
 *            of them was taken, and each second while one is full. An entry is
 *            cold when it was used neither in this round nor in the one before.
 *   recycle  looks at all entries, once in each round, in a table that is half
 *            full. One that is cold and not wanted is condemned: it leaves the
 *            index, so nobody finds it any more. If it still is so the next
 *            time, it is cleared and its number is free.
 *
 * Nobody waits for anybody. A thread that has found an entry has a whole round
 * in which to use it or hold it; in that time the entry does not change.
 * Whoever takes a number also recycles when it is time to, in its own hook or
 * handler. One thread at a time does that, and others go on meanwhile. If a
 * fork comes in between, each entry of the child is either cleared or not.
 *
 * All of it is private memory.
 */
#ifndef COLLECT_SIGNAL_ENTRIES_H
#define COLLECT_SIGNAL_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__entries {
    uint32_t bound;  /* numbers are below */
    uint32_t *given; /* in the table: the first that was never given out */
    struct cpprof__entries_state *state;
    uint8_t *used;      /* by number: the round in which it was last used */
    uint8_t *condemned; /* by number: it was taken out of the index */
    uint32_t *lists[2]; /* of free numbers; recycling writes the other one */
};

/* What one kind of table does with its entries. */
struct cpprof__entries_kind {
    bool (*is_there)(void *table, uint32_t number); /* whole, not cleared */
    bool (*is_wanted)(void *table, uint32_t number);
    void (*remove)(void *table, uint32_t number); /* from the index */
    void (*clear)(void *table, uint32_t number);
};

/* The size of the zeroed memory for them. */
size_t
cpprof__entries_bytes(uint32_t bound);
void
cpprof__entries_make(struct cpprof__entries *entries, uint32_t bound,
                     uint32_t *given, void *memory);

/* Give out numbers below that, which is at most the bound that they were made
 * with, until there is room for more. */
void
cpprof__entries_set_bound(struct cpprof__entries *entries, uint32_t bound);

/* Take a number; 0: there is none. Safety: AS, lock-free. */
uint32_t
cpprof__entries_take(struct cpprof__entries *entries);

/* Note that the entry was used in this round. Safety: AS. */
void
cpprof__entries_use(struct cpprof__entries *entries, uint32_t number);

bool
cpprof__entries_is_cold(const struct cpprof__entries *entries, uint32_t number);

/* How many numbers can be taken. */
uint32_t
cpprof__entries_left(const struct cpprof__entries *entries);

/* To be called by a recycler only. */
void
cpprof__entries_sweep(struct cpprof__entries *entries,
                      const struct cpprof__entries_kind *kind, void *table);

/* ---- all tables ------------------------------------------------------- */

/* Have a function called whenever tables are recycled, in the order in which
 * they were added. A function is added only once. Safety: AS. */
void
cpprof__recycle_add(void (*recycle)(void));

/* Recycle if it is time to. Safety: AS, lock-free. */
void
cpprof__recycle(void);

/* Between these nothing is recycled, so numbers keep their meaning for a
 * reader. Not in handlers: pause waits for a recycler, some milliseconds. */
void
cpprof__recycle_pause(void);
void
cpprof__recycle_resume(void);

/* In a child made by fork, which has neither the recycler nor the readers. */
void
cpprof__recycle_forked(void);

#endif
