/* SPDX-License-Identifier: MIT */
/*
 * An allocator whose realloc calls malloc by its name: its bytes were counted
 * by both names, and estimates came out an eighth too high. Runs with
 * heap_named.so preloaded behind the library.
 */
#include "heap_heading.h"
#include "tap.h"

#include <cpprof/heap.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N     40000
#define BYTES 10000
#define RATE  65536

int
main(void)
{
    double chance = 1 - exp(-(double)BYTES / RATE);
    double expected = N * chance, error = sqrt(expected * (1 - chance));
    double before = (double)heap_heading().alloc_objects, got;
    int i;

    cpprof_heap_set_rate(RATE);
    for (i = 0; i < N; i++)
        free(realloc(malloc(BYTES / 1000), BYTES));
    got = (double)heap_heading().alloc_objects - before;
    note("%.0f sampled, %.0f expected, standard error %.0f", got, expected,
         error);
    check_near(got, expected, 6 * error, "what realloc gave is counted once");
    return check_done();
}
