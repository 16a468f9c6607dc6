/* SPDX-License-Identifier: MIT */
#include "collect/signal/unwind/row_cache.h"

struct cpprof__row_slot cpprof__rows[CPPROF__ROW_PAIRS][2]
    __attribute__((aligned(64)));
uint32_t cpprof__row_generation = 1;

_Static_assert(sizeof(struct cpprof__row_slot) == 32, "two to a cache line");
_Static_assert(sizeof cpprof__rows[0] == 1 << 6,
               "as cpprof__row_pair() counts");

/* Which of a pair to write: one that holds nothing of use, else the one that
 * was written less often, so that they take turns. */
static struct cpprof__row_slot *
choose(struct cpprof__row_slot pair[2], uint64_t ra, uint32_t generation)
{
    uint64_t a = load_relaxed(&pair[0].version);
    uint64_t b = load_relaxed(&pair[1].version);

    if (a >> 32 != generation || load_relaxed(&pair[0].ra) == ra)
        return &pair[0];
    if (b >> 32 != generation || load_relaxed(&pair[1].ra) == ra)
        return &pair[1];
    return (uint32_t)a <= (uint32_t)b ? &pair[0] : &pair[1];
}

void
cpprof__row_store(uint64_t ra, uint32_t generation,
                  const struct cpprof__unwind_row *row)
{
    struct cpprof__row_slot *slot =
        choose(cpprof__row_pair(ra), ra, generation);
    uint64_t version = load_relaxed(&slot->version);
    struct cpprof__packed_row words = cpprof__row_pack(row);

    if ((version & 1) != 0 ||
        !cas_acq_rel(&slot->version, &version, version | 1))
        return;
    /* Release: none of these is seen before the odd version. */
    store_release(&slot->ra, ra);
    store_release(&slot->row.how_cfa, words.how_cfa);
    store_release(&slot->row.ra_fp, words.ra_fp);
    store_release(&slot->version, (uint64_t)generation << 32 |
                                      (uint32_t)((uint32_t)version + 2));
}
