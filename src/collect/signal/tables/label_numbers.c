/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/label_numbers.h"

#include "arch/atomic.h"
#include "collect/signal/tables/label_set.h"

/* Slots that are looked at before the table counts as full. */
#define MAX_SEARCH 256u

const void *cpprof__label_sets_numbered[CPPROF__LABEL_SETS];

/* With a hold on the set, which is there before the table says so. */
static const void *
put(const void **slot, struct cpprof__label_set *set)
{
    const void *found = NULL;

    add_relaxed(&set->refs, 1);
    if (cas_acq_rel(slot, &found, (const void *)set))
        return set;
    add_relaxed(&set->refs, -1u); /* not the last: it is in use */
    return found;
}

uint32_t
cpprof__label_set_number(const void *wanted)
{
    struct cpprof__label_set *set = (void *)wanted;
    uint32_t i;

    for (i = 0; set && i < MAX_SEARCH; i++) {
        uint32_t at = (uint32_t)(set->hash + i) % CPPROF__LABEL_SETS;
        const void *found = load_acquire(&cpprof__label_sets_numbered[at]);

        if (!found)
            found = put(&cpprof__label_sets_numbered[at], set);
        if (cpprof__label_sets_equal(found, set))
            return at + 1;
    }
    return set ? CPPROF__LABELS_LOST : 0;
}
