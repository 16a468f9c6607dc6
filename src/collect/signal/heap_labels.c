/* SPDX-License-Identifier: MIT */
#include "collect/signal/heap_labels.h"

#include "arch/atomic.h"

/* Places that are looked at before the table counts as full. */
#define MAX_SEARCH 256u

const void *cpprof__heap_label_sets[CPPROF__HEAP_LABEL_SETS];

uint32_t
cpprof__heap_label_number(const void *set)
{
    uint64_t hash = ((uintptr_t)set >> 4) * 0x9e3779b97f4a7c15u >> 40;
    uint32_t i;

    for (i = 0; set && i < MAX_SEARCH; i++) {
        uint32_t at = (uint32_t)(hash + i) % CPPROF__HEAP_LABEL_SETS;
        const void *found = load_acquire(&cpprof__heap_label_sets[at]);

        if (!found && cas_acq_rel(&cpprof__heap_label_sets[at], &found, set))
            return at + 1;
        if (found == set)
            return at + 1;
    }
    return 0;
}
