/* SPDX-License-Identifier: MIT */
#include "collect/signal/sample/ring.h"

#include "arch/atomic.h"

size_t
cpprof__ring_bytes(uint64_t n_words)
{
    return sizeof(struct cpprof__ring) + n_words * sizeof(uint64_t);
}

void
cpprof__ring_init(struct cpprof__ring *ring, uint64_t n_words)
{
    ring->mask = n_words - 1;
}

/* The position of n reserved words, or UINT64_MAX. */
static uint64_t
reserve(struct cpprof__ring *ring, uint64_t n)
{
    uint64_t head = load_relaxed(&ring->head);

    do {
        uint64_t used = head - load_acquire(&ring->tail);

        if (used + n > ring->mask + 1)
            return UINT64_MAX;
    } while (!cas_acq_rel(&ring->head, &head, head + n));
    return head;
}

bool
cpprof__ring_push(struct cpprof__ring *ring,
                  const struct cpprof__ring_head *head, const uintptr_t *pcs,
                  size_t n_pcs)
{
    uint64_t mask = ring->mask;
    uint64_t at = reserve(ring, CPPROF__RING_HEAD_WORDS + n_pcs);
    size_t i;

    if (at == UINT64_MAX) {
        add_relaxed(&ring->lost, head->weight);
        return false;
    }
    store_relaxed(&ring->words[(at + 1) & mask], head->labels);
    store_relaxed(&ring->words[(at + 2) & mask], (uint32_t)head->tid);
    for (i = 0; i < n_pcs; i++)
        store_relaxed(&ring->words[(at + CPPROF__RING_HEAD_WORDS + i) & mask],
                      pcs[i]);
    store_release(&ring->words[at & mask], (uint64_t)head->weight << 32 |
                                               (uint64_t)head->flags << 16 |
                                               n_pcs);
    return true;
}

bool
cpprof__ring_is_filling(const struct cpprof__ring *ring)
{
    return load_relaxed(&ring->head) - load_relaxed(&ring->tail) >
           ring->mask / 2;
}

bool
cpprof__ring_pop(struct cpprof__ring *ring, struct cpprof__ring_record *record)
{
    uint64_t mask = ring->mask;
    uint64_t tail = load_relaxed(&ring->tail);
    uint64_t first = load_acquire(&ring->words[tail & mask]);
    size_t i, n;

    if (!first || load_relaxed(&ring->head) == tail)
        return false;
    n = first & 0xffff;
    if (n > CPPROF__RING_MAX_PCS || n + CPPROF__RING_HEAD_WORDS > mask + 1)
        return false;
    record->head.weight = (uint32_t)(first >> 32);
    record->head.flags = (uint16_t)(first >> 16);
    record->n_pcs = (uint16_t)n;
    record->head.labels = load_relaxed(&ring->words[(tail + 1) & mask]);
    record->head.tid = (int32_t)load_relaxed(&ring->words[(tail + 2) & mask]);
    for (i = 0; i < n; i++)
        record->pcs[i] = load_relaxed(
            &ring->words[(tail + CPPROF__RING_HEAD_WORDS + i) & mask]);
    for (i = 0; i < n + CPPROF__RING_HEAD_WORDS; i++)
        store_relaxed(&ring->words[(tail + i) & mask], 0);
    store_release(&ring->tail, tail + n + CPPROF__RING_HEAD_WORDS);
    return true;
}
