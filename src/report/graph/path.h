/* SPDX-License-Identifier: MIT */
/*
 * Shared by all walks over samples: the path, which is the stack of the
 * previous sample, and the running total of values.
 *
 * A node that is entered with one sample and left before another one gets the
 * values of the samples in between: the difference of the totals.
 */
#ifndef REPORT_PATH_H
#define REPORT_PATH_H

#include "report/graph.h"

struct cpprof__path {
    const uint32_t *frames; /* leaf first */
    size_t n_frames;
};

/* How many frames a stack has in common with the path, from the root. */
static inline size_t
cpprof__path_shared(const struct cpprof__path *path, const uint32_t *frames,
                    size_t n)
{
    const uint32_t *a = path->frames, *b = frames;
    size_t i = path->n_frames, j = n;

    while (i && j && a[i - 1] == b[j - 1]) {
        i--;
        j--;
    }
    return n - j;
}

/* Of the samples so far; sums wrap around. */
struct cpprof__running {
    int64_t value;
    int64_t divisor;
};

static inline void
cpprof__running_add(struct cpprof__running *running, int64_t value,
                    int64_t divisor)
{
    running->value = cpprof__add(running->value, value);
    running->divisor = cpprof__add(running->divisor, divisor);
}

#endif
