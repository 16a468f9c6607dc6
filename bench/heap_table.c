/* SPDX-License-Identifier: MIT */
/*
 * A table of a million live samples: what it costs free() to look into it, and
 * what memory it takes. All blocks are sampled, at made-up addresses.
 */
#include "collect/signal/heap/heap.h"
#include <cpprof/heap.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define N_LIVE    1000000u
#define N_LOOKUPS 2000000u
#define SPAN      (1ull << 32) /* of addresses */

static uint64_t random_state = 1;

static uint64_t
draw(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 16;
}

/* Live ones have numbers below SPAN / 16, others above, so the same places of
 * the filter. */
static const void *
address_of(uint64_t number)
{
    return (const void *)(uintptr_t)(0x500000000000u + number * 16);
}

static double
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double
resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static const void **
addresses(size_t n)
{
    const void **all = malloc(n * sizeof *all);

    if (!all)
        exit(1);
    return all;
}

/* Nanoseconds of each, as free() asks: the filter, then the table. Best of
 * some passes over what stays as it is. */
static double
lookup_ns(const void *const *all, size_t n)
{
    size_t found = 0, i;
    double before = now_ns();

    for (i = 0; i < n; i++)
        if (cpprof__heap_may_be_sampled(all[i]))
            found += cpprof__heap_remove(all[i], 0, NULL);
    if (found)
        exit(1);
    return (now_ns() - before) / (double)n;
}

static double
best_lookup_ns(const void *const *all, size_t n)
{
    double best = lookup_ns(all, n), again;
    int i;

    for (i = 0; i < 7; i++) {
        again = lookup_ns(all, n);
        best = again < best ? again : best;
    }
    return best;
}

/* Addresses that are not live, by what the filter says of them. */
static const void **
strangers(bool hit, size_t n)
{
    const void **all = addresses(n);
    size_t i = 0;

    while (i < n) {
        const void *address = address_of(SPAN / 16 + draw() % (SPAN / 16));

        if (cpprof__heap_may_be_sampled(address) == hit)
            all[i++] = address;
    }
    return all;
}

static void
fill(const void **live)
{
    size_t i;

    for (i = 0; i < N_LIVE; i++)
        live[i] = address_of(draw() % (SPAN / 16));
    cpprof_heap_set_rate(1);
    for (i = 0; i < N_LIVE; i++)
        cpprof_heap_record(live[i], 64);
    cpprof_heap_set_rate(0);
}

int
main(void)
{
    const void **live = addresses(N_LIVE), **hits, **misses;
    double before, bytes, start, made_ns;
    size_t i, n = 0;

    for (i = 0; i < N_LIVE; i++)
        live[i] = NULL; /* touched before it is measured */
    before = resident_bytes();
    start = now_ns();
    fill(live);
    made_ns = (now_ns() - start) / N_LIVE;
    bytes = resident_bytes() - before;
    hits = strangers(true, N_LOOKUPS);
    misses = strangers(false, N_LOOKUPS);
    printf("live samples                     %9u\n", N_LIVE);
    printf("memory for each                  %9.1f bytes (asked: 64)\n",
           bytes / N_LIVE);
    printf("one sample                       %9.1f ns\n", made_ns);
    printf("free, the filter says no         %9.1f ns\n",
           best_lookup_ns(misses, N_LOOKUPS));
    printf("free, the filter says perhaps    %9.1f ns, at random over 4 GiB\n",
           best_lookup_ns(hits, N_LOOKUPS));
    printf("  of a thousand again and again  %9.1f ns (asked: 10)\n",
           best_lookup_ns(hits, N_LOOKUPS / 2000));
    for (i = N_LIVE; i > 1; i--) { /* shuffle */
        size_t other = draw() % i;
        const void *here = live[i - 1];

        live[i - 1] = live[other];
        live[other] = here;
    }
    start = now_ns();
    for (i = 0; i < N_LIVE; i++)
        n += cpprof__heap_remove(live[i], 0, NULL);
    printf("free of a sampled block          %9.1f ns\n",
           (now_ns() - start) / N_LIVE);
    if (n < N_LIVE * 0.99) /* an address may have been drawn twice */
        printf("only %zu of %u were found\n", n, N_LIVE);
    return 0;
}
