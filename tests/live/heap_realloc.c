/* SPDX-License-Identifier: MIT */
/*
 * An allocator whose realloc calls malloc by its name: its bytes were counted
 * by both names, and estimates came out an eighth too high. Runs with
 * heap_named.so preloaded behind the library.
 */
#include "tap.h"

#include <cpprof/heap.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N     40000
#define BYTES 10000
#define RATE  65536

static char text[512];
static size_t n_text;

static int
keep_head(void *ctx, const void *data, size_t n)
{
    if (n > sizeof text - 1 - n_text)
        n = sizeof text - 1 - n_text;
    memcpy(text + n_text, data, n);
    n_text += n;
    return 0;
}

/* How many blocks were sampled, in the first line of the text form. */
static double
n_sampled(void)
{
    struct cpprof_writer writer = {keep_head, NULL, NULL};
    struct cpprof_heap_options options = {.size = sizeof options, .debug = 1};
    struct cpprof_error error = {0};
    long long objects;

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    n_text = 0;
    memset(text, 0, sizeof text);
    if (cpprof_write_heap_profile(writer, &options, &error))
        bail("%s", error.text);
    if (sscanf(text, "heap profile: %*d: %*d [%lld:", &objects) != 1)
        bail("no heap profile: %.60s", text);
    return (double)objects;
}

int
main(void)
{
    double chance = 1 - exp(-(double)BYTES / RATE);
    double expected = N * chance, error = sqrt(expected * (1 - chance));
    double before = n_sampled(), got;
    int i;

    cpprof_set_heap_rate(RATE);
    for (i = 0; i < N; i++)
        free(realloc(malloc(BYTES / 1000), BYTES));
    got = n_sampled() - before;
    note("%.0f sampled, %.0f expected, standard error %.0f", got, expected,
         error);
    check_near(got, expected, 6 * error, "what realloc gave is counted once");
    return check_done();
}
