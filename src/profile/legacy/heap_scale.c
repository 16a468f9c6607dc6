/* SPDX-License-Identifier: MIT */
#include "profile/legacy/heap_scale.h"

#include "profile/legacy/numbers.h"

#include <math.h>

void
cpprof__scale_heap_sample(int64_t *count, int64_t *size, int64_t rate)
{
    double mean, scale;

    if (*count == 0 || *size == 0) {
        *count = *size = 0;
        return;
    }
    if (rate <= 1)
        return;
    mean = (double)*size / (double)*count;
    scale = 1 / (1 - exp(-mean / (double)rate));
    *count = cpprof__truncate((double)*count * scale);
    *size = cpprof__truncate((double)*size * scale);
}
