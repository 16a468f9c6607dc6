/* SPDX-License-Identifier: MIT */
/* Samples merged by stack and labels, so that a profile contains each only
 * once. */
#ifndef VM_MERGED_H
#define VM_MERGED_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash.h"

struct cpprof__vm_merged_sample {
    const uint64_t *ids; /* the labels' bytes and a terminator are behind */
    uint32_t n_ids;
    uint32_t n_labels;
    int64_t value;
};

struct cpprof__vm_merged {
    struct cpprof__arena arena;
    struct cpprof__buffer samples; /* struct cpprof__vm_merged_sample */
    struct cpprof__index index;
};

/* Add to the value of the equal sample, or copy it; false: no memory. Its
 * labels' bytes are apart. */
bool
cpprof__vm_merged_add(struct cpprof__vm_merged *merged,
                      const struct cpprof__vm_merged_sample *sample,
                      const char *labels);
void
cpprof__vm_merged_free(struct cpprof__vm_merged *merged);

#endif
