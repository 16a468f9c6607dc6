/* SPDX-License-Identifier: MIT */
#include <cpprof/heap.h>

/* 1 - exp(-x), x >= 0, without libm: by powers of the 64th part of what is
 * left after whole multiples of ln 2, so that nothing is lost for a small x. */
static double
one_minus_exp(double x)
{
    const double ln2 = 0x1.62e42fefa39efp-1;
    double term, sum = 0, scale = 1;
    int i;

    if (x > 50)
        return 1;
    for (; x > ln2; x -= ln2)
        scale /= 2;
    for (i = 1, term = x; i < 24; i++) {
        sum += term;
        term *= -x / (i + 1);
    }
    return 1 - scale + scale * sum;
}

static int64_t
whole(double x)
{
    return x < 0x1p63 ? (int64_t)x : INT64_MAX;
}

void
cpprof_heap_scale_sample(int64_t count, int64_t size, int64_t rate,
                         int64_t *scaled_count, int64_t *scaled_size)
{
    double scale;

    *scaled_count = 0;
    *scaled_size = 0;
    if (count <= 0 || size <= 0)
        return;
    if (rate <= 1) {
        *scaled_count = count;
        *scaled_size = size;
        return;
    }
    scale = 1 / one_minus_exp((double)size / (double)count / (double)rate);
    *scaled_count = whole((double)count * scale);
    *scaled_size = whole((double)size * scale);
}
