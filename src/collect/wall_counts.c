/* SPDX-License-Identifier: MIT */
#include "collect/wall_counts.h"

#include <stdlib.h>

#define PLACES_MIN 1024u

static struct cpprof__wall_count *
place_of(const struct cpprof__wall_counts *counts,
         const struct cpprof__wall_count *key)
{
    uint64_t hash = (key->stack * UINT64_C(0x9e3779b97f4a7c15)) ^
                    ((uint64_t)key->labels << 34 | key->state << 30);
    uint32_t at = (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32);

    for (;; at++) {
        struct cpprof__wall_count *p =
            &counts->places[at & (counts->n_places - 1)];

        if (!p->n || (p->stack == key->stack && p->labels == key->labels &&
                      p->state == key->state))
            return p;
    }
}

static bool
grow(struct cpprof__wall_counts *counts)
{
    struct cpprof__wall_counts larger = *counts;
    uint32_t i;

    larger.n_places = counts->n_places ? 2 * counts->n_places : PLACES_MIN;
    larger.places = calloc(larger.n_places, sizeof *larger.places);
    if (!larger.places)
        return false;
    for (i = 0; i < counts->n_places; i++)
        if (counts->places[i].n)
            *place_of(&larger, &counts->places[i]) = counts->places[i];
    free(counts->places);
    *counts = larger;
    return true;
}

void
cpprof__wall_add(struct cpprof__wall_counts *counts,
                 const struct cpprof__wall_count *key, int64_t ns)
{
    struct cpprof__wall_count *p;

    if (2 * counts->n >= counts->n_places && !grow(counts) &&
        counts->n + 1 >= counts->n_places) {
        counts->lost_ns += ns;
        return;
    }
    p = place_of(counts, key);
    if (!p->n) {
        *p = *key;
        p->n = p->ns = 0;
        counts->n++;
    }
    p->n++;
    p->ns += ns;
}

void
cpprof__wall_counts_free(struct cpprof__wall_counts *counts)
{
    free(counts->places);
    *counts = (struct cpprof__wall_counts){0};
}
