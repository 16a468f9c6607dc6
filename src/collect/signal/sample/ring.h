/* SPDX-License-Identifier: MIT */
/*
 * The ring between the handlers of all threads and the one drainer.
 *
 * Protocol. A handler reserves n words by moving `head` with a
 * compare-and-swap, if `tail` leaves room for them; fills all but the first;
 * and commits by storing the first, which is never 0, with release order. The
 * drainer reads the word at `tail` with acquire order; 0 means that the record
 * there is not committed yet and that the ring is empty for now. It copies the
 * record, sets its words back to 0 (so that a place not yet committed always
 * reads 0) and then moves `tail` with release order. Nobody waits for anybody:
 * a handler that finds no room counts its samples as lost.
 *
 * The ring has no pointers, so it may lie in a file that another process maps
 * after this one died: what was committed can be read, a record in the making
 * ends the reading.
 *
 * Record: word 0 = weight << 32 | flags << 16 | number of pcs; word 1 = label
 * set; word 2 = tid; then the pcs, leaf first.
 */
#ifndef COLLECT_SIGNAL_RING_H
#define COLLECT_SIGNAL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words before the pcs, and the deepest stack with the frames of our own. */
#define CPPROF__RING_HEAD_WORDS 3
#define CPPROF__RING_MAX_PCS    1026

struct cpprof__ring {
    /* Written by handlers. */
    uint64_t head; /* words reserved since the start */
    uint64_t lost; /* samples, by weight, that found no room */
    uint64_t pad_handlers[6];
    /* Written by the drainer. */
    uint64_t tail; /* words freed since the start */
    uint32_t wake; /* futex: 1 when a handler asks for the drainer */
    uint32_t pad_drainer[13];
    /* Fixed after cpprof__ring_init(). */
    uint64_t mask; /* capacity in words - 1 */
    uint64_t pad_fixed[7];
    uint64_t words[];
};

/* What a record has beside its pcs. */
struct cpprof__ring_head {
    uint32_t weight; /* how many ticks it stands for, at least 1 */
    uint16_t flags;  /* of who pushes it */
    int32_t tid;     /* of the thread; 0: not said */
    uint64_t labels;
};

/* A record as it comes out. */
struct cpprof__ring_record {
    struct cpprof__ring_head head;
    uint16_t n_pcs;
    uint64_t pcs[CPPROF__RING_MAX_PCS];
};

/* Bytes of a ring with n_words, a power of two. */
size_t
cpprof__ring_bytes(uint64_t n_words);

/* ring is zeroed memory of cpprof__ring_bytes(n_words). */
void
cpprof__ring_init(struct cpprof__ring *ring, uint64_t n_words);

/*
 * Add a record; counts weight as lost and returns false when there is no room.
 * Safety: AS, any thread.
 */
bool
cpprof__ring_push(struct cpprof__ring *ring,
                  const struct cpprof__ring_head *head, const uintptr_t *pcs,
                  size_t n_pcs);

/* More than half full? Safety: AS. */
bool
cpprof__ring_is_filling(const struct cpprof__ring *ring);

/*
 * Take the oldest record; false when there is none, or when the ring does not
 * make sense (its memory may have been written by another process).
 * Safety: one thread at a time.
 */
bool
cpprof__ring_pop(struct cpprof__ring *ring, struct cpprof__ring_record *record);

#endif
