/* SPDX-License-Identifier: MIT */
/*
 * Writing a heap profile of 10 000 distinct stacks with names, lines and
 * inlined calls, while another thread works: how long it takes, and for how
 * long that thread is ever held up. heap_write FILE.
 */
#include <cpprof/heap.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define N_STACKS    10000u
#define DEPTH       16
#define N_FUNCTIONS 1024u
#define N_WRITES    9

/* --- stacks ----------------------------------------------------------------
 */

typedef void
step(uint64_t path, int depth);

static step *const functions[N_FUNCTIONS];

/* The next function depends on the path and the depth, so stacks part early
 * and share little. */
static inline step *
next_of(uint64_t path, int depth)
{
    uint64_t x = (path * 64 + (uint64_t)depth) * 0x9e3779b97f4a7c15u;

    return functions[x >> 32 & (N_FUNCTIONS - 1)];
}

__attribute__((noinline)) static void
keep_block(void)
{
    char *volatile block = malloc(100);

    *block = 1;
}

static inline void
descend(uint64_t path, int depth)
{
    volatile int here = depth;

    if (depth == DEPTH)
        keep_block();
    else
        next_of(path, depth)(path, depth + 1);
    here++; /* no tail call */
}

/* 1024 functions of three digits in base 8 and one of two. */
#define F1(n)                                                                  \
    static void f##n(uint64_t path, int depth)                                 \
    {                                                                          \
        descend(path, depth);                                                  \
    }
#define F8(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7)
#define F64(m, n)                                                              \
    F8(m, n##0)                                                                \
    F8(m, n##1)                                                                \
    F8(m, n##2)                                                                \
    F8(m, n##3) F8(m, n##4) F8(m, n##5) F8(m, n##6) F8(m, n##7)
#define F512(m, n)                                                             \
    F64(m, n##0)                                                               \
    F64(m, n##1)                                                               \
    F64(m, n##2)                                                               \
    F64(m, n##3) F64(m, n##4) F64(m, n##5) F64(m, n##6) F64(m, n##7)
#define NAME(n) f##n,
F512(F1, 0)
F512(F1, 1)
static step *const functions[N_FUNCTIONS] = {F512(NAME, 0) F512(NAME, 1)};

/* --- the other thread ------------------------------------------------------
 */

static int stop;

/* The longest time between two steps of the thread, and the longest in which
 * the kernel did not give the processor to somebody else. */
struct held_up {
    double any_ns;
    double ours_ns;
};

static double
now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static long
switched(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static void *
work(void *data)
{
    struct held_up *longest = data;
    void *(*volatile get)(size_t) = malloc;
    double last = now_ns(CLOCK_MONOTONIC);
    long n_switched = switched();

    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        double now, gap;

        free(get(200));
        now = now_ns(CLOCK_MONOTONIC);
        gap = now - last;
        last = now;
        if (gap < 50e3)
            continue;
        if (gap > longest->any_ns)
            longest->any_ns = gap;
        if (switched() == n_switched && gap > longest->ours_ns)
            longest->ours_ns = gap;
        n_switched = switched();
    }
    return NULL;
}

/* --- writing ---------------------------------------------------------------
 */

struct cost {
    double wall_ns;
    double cpu_ns; /* of the writing thread */
};

static struct cost
write_once(const char *path)
{
    struct cpprof_writer out;
    struct cpprof_error error;
    struct cost before = {now_ns(CLOCK_MONOTONIC),
                          now_ns(CLOCK_THREAD_CPUTIME_ID)};

    if (cpprof_writer_to_path(path, &out, &error) ||
        cpprof_heap_write(&out, NULL, &error)) {
        fprintf(stderr, "heap_write: %s\n", error.text);
        exit(1);
    }
    return (struct cost){now_ns(CLOCK_MONOTONIC) - before.wall_ns,
                         now_ns(CLOCK_THREAD_CPUTIME_ID) - before.cpu_ns};
}

static int
compare(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;

    return (x->wall_ns > y->wall_ns) - (x->wall_ns < y->wall_ns);
}

static struct held_up
worker_while(void (*what)(const char *), const char *path)
{
    struct held_up longest = {0, 0};
    pthread_t thread;

    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    if (pthread_create(&thread, NULL, work, &longest))
        exit(1);
    what(path);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    return longest;
}

/* As long as the writing takes, but without it. */
static double wait_ns;

static void
burn(const char *path)
{
    double end = now_ns(CLOCK_MONOTONIC) + wait_ns;

    while (now_ns(CLOCK_MONOTONIC) < end)
        continue;
}

static void
write_all(const char *path)
{
    struct cost costs[N_WRITES];
    int i;

    for (i = 0; i < N_WRITES; i++) {
        costs[i] = write_once(path);
        wait_ns += costs[i].wall_ns;
    }
    qsort(costs, N_WRITES, sizeof *costs, compare);
    printf("written warm: median             %9.1f ms (asked: 100), %.1f ms of "
           "CPU time, best %.1f ms\n",
           costs[N_WRITES / 2].wall_ns / 1e6, costs[N_WRITES / 2].cpu_ns / 1e6,
           costs[0].wall_ns / 1e6);
}

int
main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "/dev/null";
    struct held_up writing, without;
    struct cost cold;
    uint64_t i;

    cpprof_heap_set_rate(1);
    for (i = 0; i < N_STACKS; i++)
        descend(i, 0);
    cpprof_heap_set_rate(524288);
    cold = write_once(path);
    printf("written the first time           %9.1f ms, %.1f ms of CPU time\n",
           cold.wall_ns / 1e6, cold.cpu_ns / 1e6);
    writing = worker_while(write_all, path);
    without = worker_while(burn, path);
    printf("another thread held up           %9.3f ms (asked: 1), and %.3f ms "
           "where the kernel gave its processor away\n"
           "  while nothing is written       %9.3f ms, and %.3f ms\n",
           writing.ours_ns / 1e6, writing.any_ns / 1e6, without.ours_ns / 1e6,
           without.any_ns / 1e6);
    return 0;
}
