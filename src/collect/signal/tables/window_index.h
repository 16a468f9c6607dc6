/* SPDX-License-Identifier: MIT */
/*
 * Find or make: the index of the tables that hooks and handlers add to, from
 * the hash of a key to the number of an entry. Nobody waits.
 *
 * Levels of 4096 slots, four times as many in each that follows; in every
 * level a hash has a window of 8 slots, half a cache line. Slots are filled in
 * the order in which they are searched, by compare-and-swap, so a search ends
 * at the first empty slot; what was taken out leaves a mark. A small table
 * touches the first level only, 16 KiB.
 *
 * A slot holds a number (0: empty) and, above it, bits of the hash, so that
 * others' keys are hardly ever looked at.
 *
 * What is not there yet is made in three steps: take an entry's number, fill
 * the entry, and put its number into the index. The loser of that race uses the
 * winner's entry; its own is not used, nor is that of a thread that a fork left
 * behind between the steps, until it is recycled (entries.h).
 */
#ifndef COLLECT_SIGNAL_WINDOW_INDEX_H
#define COLLECT_SIGNAL_WINDOW_INDEX_H

#include "arch/atomic.h"
#include "arch/mix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_SLOTS 8u

/* Slots of the first n levels together. */
#define WINDOW_INDEX_SLOTS(n) (4096u * ((1u << 2 * (n)) - 1) / 3)

/* What one kind of table does, the same for all calls. */
struct window_kind {
    unsigned levels;
    unsigned number_bits; /* of the largest number */
    bool (*is_key)(const void *table, uint32_t number, const void *key);
    /* The number of a new entry, whole; 0: there is no room. */
    uint32_t (*make)(void *table, const void *key);
};

/* The i-th slot for hash: level i / 8. */
static inline uint32_t *
window_slot(uint32_t *index, uint64_t hash, unsigned i)
{
    unsigned level = i / WINDOW_SLOTS;
    uint64_t n_windows = 512u << 2 * level;
    uint64_t window = (hash >> 3 * level) & (n_windows - 1);

    return index + WINDOW_INDEX_SLOTS(level) + window * WINDOW_SLOTS +
           i % WINDOW_SLOTS;
}

/* The mark in a slot whose entry was taken out: no number, but not empty. */
#define WINDOW_GONE 0x80000000u

/*
 * The number of a key's entry, or the slot where it belongs, which held *was;
 * NULL: there is no room. Who comes after others that put something into that
 * slot searches again.
 */
static inline __attribute__((always_inline)) uint32_t
window_find(const struct window_kind *kind, uint32_t *index, uint64_t hash,
            const void *table, const void *key, uint32_t **slot, uint32_t *was)
{
    uint32_t mask = (1u << kind->number_bits) - 1;
    uint32_t tag = (uint32_t)(hash >> 32) & ~mask;
    unsigned i;

    *slot = NULL;
    for (i = 0; i < kind->levels * WINDOW_SLOTS; i++) {
        uint32_t *at = window_slot(index, hash, i);
        uint32_t found = load_acquire(at);

        if (!(found & mask)) {
            if (!*slot) {
                *slot = at;
                *was = found;
            }
            if (!found)
                return 0;
        } else if ((found & ~mask) == tag &&
                   kind->is_key(table, found & mask, key)) {
            return found & mask;
        }
    }
    return 0;
}

/* The number of a key's entry; 0: there is no room. Inlined, so that a kind
 * that is a constant costs no calls. */
static inline __attribute__((always_inline)) uint32_t
window_find_or_make(const struct window_kind *kind, uint32_t *index,
                    uint64_t hash, void *table, const void *key)
{
    uint32_t mask = (1u << kind->number_bits) - 1, made = 0, was = 0;
    uint32_t tag = (uint32_t)(hash >> 32) & ~mask;

    for (;;) {
        uint32_t *slot;
        uint32_t found =
            window_find(kind, index, hash, table, key, &slot, &was);

        if (found || !slot)
            return found;
        if (!made)
            made = kind->make(table, key);
        if (!made || cas_acq_rel(slot, &was, tag | made))
            return made;
    }
}

/* Take an entry out, if it is there. */
static inline void
window_remove(const struct window_kind *kind, uint32_t *index, uint64_t hash,
              uint32_t number)
{
    uint32_t mask = (1u << kind->number_bits) - 1;
    uint32_t wanted = ((uint32_t)(hash >> 32) & ~mask) | number;
    unsigned i;

    for (i = 0; i < kind->levels * WINDOW_SLOTS; i++) {
        uint32_t *slot = window_slot(index, hash, i);
        uint32_t found = load_acquire(slot);

        if (!found)
            return;
        if (found == wanted) {
            cas_acq_rel(slot, &found, WINDOW_GONE);
            return;
        }
    }
}

#endif
