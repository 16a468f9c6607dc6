/* SPDX-License-Identifier: MIT */
/*
 * All tables have their places as if they were as long as can be; of each only
 * the beginning is mapped. So nothing moves when there is to be more of them.
 */
#include "collect/signal/heap/heap_room.h"

#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/heap_buckets.h"
#include "collect/signal/heap/heap_live.h"
#include "collect/signal/tables/reserve.h"

/* Tunable: room for 256 GiB in use at the default rate, for as many blocks at
 * higher ones, and for 32 GiB at those below 64 KiB. */
#define LIVE_LEAST   (1 << 19)
#define IN_USE_BYTES ((int64_t)1 << 35)

/* Bounds are multiples of it. */
#define LIVE_STEP 65536u

/* In the order of their places. */
enum { BLOCKS, BUCKETS, LIVE_INDEX, THE_REST, N_TABLES };

uint32_t
cpprof__heap_live_for(int64_t rate)
{
    int64_t live = IN_USE_BYTES / (rate > 0 ? rate : CPPROF__HEAP_RATE);

    if (live < LIVE_LEAST)
        return LIVE_LEAST;
    return live < CPPROF__HEAP_LIVE ? (uint32_t)live / LIVE_STEP * LIVE_STEP
                                    : CPPROF__HEAP_LIVE;
}

uint32_t
cpprof__heap_buckets_for(uint32_t live)
{
    return live / (CPPROF__HEAP_LIVE / CPPROF__HEAP_BUCKETS);
}

size_t
cpprof__heap_bucket_index_offset(void)
{
    return cpprof__live_index_bytes(CPPROF__HEAP_LIVE);
}

size_t
cpprof__heap_filter_offset(void)
{
    return cpprof__heap_bucket_index_offset() + cpprof__bucket_index_bytes();
}

size_t
cpprof__heap_born_offset(void)
{
    return cpprof__heap_filter_offset() + CPPROF__HEAP_FILTER;
}

size_t
cpprof__heap_private_bytes(void)
{
    return cpprof__heap_born_offset() + CPPROF__HEAP_LIVE * sizeof(uint32_t);
}

/* Where a table for so many live blocks ends. */
static size_t
end_of(unsigned table, uint32_t live)
{
    size_t private_start = cpprof__heap_bytes();

    switch (table) {
    case BLOCKS:
        return cpprof__heap_buckets_offset() -
               (CPPROF__HEAP_LIVE - live) * sizeof(struct cpprof__heap_block);
    case BUCKETS:
        return cpprof__heap_buckets_offset() +
               cpprof__heap_buckets_for(live) *
                   sizeof(struct cpprof__heap_bucket);
    case LIVE_INDEX:
        return private_start + cpprof__live_index_bytes(live);
    default:
        return private_start + cpprof__heap_born_offset() +
               live * sizeof(uint32_t);
    }
}

static size_t
down(size_t n)
{
    return n & ~(CPPROF__PIECE_BYTES - 1);
}

static size_t
up(size_t n)
{
    return down(n + CPPROF__PIECE_BYTES - 1);
}

/* The next table's piece begins with the page in which this one's last entries
 * are. */
static size_t
end_of_piece(unsigned table, uint32_t live)
{
    size_t end = up(end_of(table, live));
    size_t next = down(end_of(table, CPPROF__HEAP_LIVE));

    return table + 1 < N_TABLES && end > next ? next : end;
}

/* What `live` need and `before` do not; 0: none are. Returns how many pieces.
 */
static unsigned
find_pieces(uint32_t before, uint32_t live, struct cpprof__piece *pieces)
{
    size_t start = 0;
    unsigned i, n = 0;

    for (i = 0; i < N_TABLES; i++) {
        struct cpprof__piece *p = &pieces[n];

        p->start = before ? end_of_piece(i, before) : start;
        p->end = end_of_piece(i, live);
        n += p->start < p->end;
        start = down(end_of(i, CPPROF__HEAP_LIVE));
    }
    return n;
}

void *
cpprof__heap_map(uint32_t live)
{
    struct cpprof__piece pieces[N_TABLES];
    unsigned n = find_pieces(0, live, pieces);

    return cpprof__reserve_pieces(end_of_piece(THE_REST, CPPROF__HEAP_LIVE),
                                  pieces, n);
}

bool
cpprof__heap_map_more(const struct cpprof__heap *heap, uint32_t live)
{
    struct cpprof__piece pieces[N_TABLES];
    unsigned n = find_pieces(heap->live_bound, live, pieces);

    return cpprof__reserve_more(heap->head, pieces, n);
}
