/* SPDX-License-Identifier: MIT */
/*
 * What malloc and free cost together. For each line "THREADS SIZE" that it
 * reads, heap_pairs [MILLISECONDS] makes pairs of malloc and free of that size
 * for about so long, in one or two threads, and prints the nanoseconds of CPU
 * time of one pair. Whoever asks has one such process for each allocator, and
 * asks them in turn; so what is compared ran within milliseconds. Size 0 is a
 * mix of small sizes, of which 64 blocks live.
 *
 * The allocating function lies under 20 others, so that a sampled stack is as
 * deep as those of real programs.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH   20
#define N_MIXED 64 /* a power of two */

/* The compiler is not to see that these are malloc and free, of which it would
 * leave out both. */
static void *(*volatile allocate)(size_t) = malloc;
static void (*volatile release)(void *) = free;

struct job {
    size_t size;
    long n; /* pairs */
    pthread_barrier_t *start;
    double pair_ns; /* the result */
};

static uint64_t
thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void
pairs_of_size(size_t size, long n)
{
    void *(*get)(size_t) = allocate;
    void (*give)(void *) = release;

    while (n--) {
        char *block = get(size);

        *(volatile char *)block = 1;
        give(block);
    }
}

/* Most small, few large, 104 bytes on average; a block lives until its place
 * is needed again. */
__attribute__((noinline)) static void
pairs_of_mix(long n)
{
    static const uint16_t mix[16] = {16, 24, 32,  32, 40, 48,  48,  64,
                                     64, 80, 100, 16, 24, 128, 256, 700};
    void *live[N_MIXED] = {NULL};
    void *(*get)(size_t) = allocate;
    void (*give)(void *) = release;
    uint64_t x = 88172645463325252u;
    size_t i;

    while (n--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        i = x >> 58 & (N_MIXED - 1);
        give(live[i]);
        live[i] = get(mix[x >> 40 & 15]);
        *(volatile char *)live[i] = 1;
    }
    for (i = 0; i < N_MIXED; i++)
        give(live[i]);
}

__attribute__((noinline)) static void
descend(int depth, size_t size, long n)
{
    volatile int here = depth;

    if (depth > 0)
        descend(depth - 1, size, n);
    else if (size)
        pairs_of_size(size, n);
    else
        pairs_of_mix(n);
    here--; /* no tail call */
}

static uint64_t
time_of(size_t size, long n)
{
    uint64_t before = thread_ns();

    descend(DEPTH, size, n);
    return thread_ns() - before;
}

static void *
run(void *data)
{
    struct job *job = data;

    pthread_barrier_wait(job->start);
    time_of(job->size, job->n / 8); /* warm */
    job->pair_ns = (double)time_of(job->size, job->n) / (double)job->n;
    return NULL;
}

/* Pairs of that size that take about so long; found out once for each. */
static long
pairs_in(uint64_t slice_ns, size_t size)
{
    static struct {
        size_t size;
        long n;
    } known[16];
    size_t i;

    for (i = 0; known[i].n && i < 15; i++)
        if (known[i].size == size)
            return known[i].n;
    known[i].size = size;
    known[i].n = 64;
    while (time_of(size, known[i].n) < slice_ns / 4)
        known[i].n *= 2;
    return known[i].n *= 3;
}

static double
measure(int n_threads, size_t size, uint64_t slice_ns)
{
    long n = pairs_in(slice_ns, size);
    pthread_t threads[2];
    pthread_barrier_t start;
    struct job jobs[2];
    double sum = 0;
    int i;

    pthread_barrier_init(&start, NULL, (unsigned)n_threads);
    for (i = 0; i < n_threads; i++) {
        jobs[i] = (struct job){size, n, &start, 0};
        if (pthread_create(&threads[i], NULL, run, &jobs[i]))
            exit(1);
    }
    for (i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        sum += jobs[i].pair_ns;
    }
    return sum / n_threads;
}

int
main(int argc, char **argv)
{
    double slice_ms = argc > 1 ? atof(argv[1]) : 3;
    int n_threads;
    size_t size;

    while (scanf("%d %zu", &n_threads, &size) == 2 && n_threads >= 1 &&
           n_threads <= 2) {
        printf("%.3f\n", measure(n_threads, size, (uint64_t)(slice_ms * 1e6)));
        fflush(stdout);
    }
    return 0;
}
