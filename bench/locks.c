/* SPDX-License-Identifier: MIT */
/*
 * What the profiles of waits cost. For each line that it reads, locks prints
 * the nanoseconds of
 *
 *     pair N      CPU time of one uncontended lock and unlock, in one thread,
 *                 while N more threads exist
 *     pass        CPU time of one hand-over: two threads, each of which waits
 *                 for the other to give up a mutex, in turn
 *     rates B M   nothing: sets the block rate and the mutex fraction, where
 *                 the library is loaded, and prints 0
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAIRS  300000
#define PASSES 3000

static uint64_t
now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double
pair(void)
{
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    uint64_t start = now(CLOCK_THREAD_CPUTIME_ID);
    int i;

    for (i = 0; i < PAIRS; i++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
    return (double)(now(CLOCK_THREAD_CPUTIME_ID) - start) / PAIRS;
}

/*
 * Three mutexes in a ring: a thread that has one waits for the next, and then
 * gives up the first. So each of the two waits for the other at every step.
 */
static pthread_mutex_t ring[3];
static pthread_barrier_t start;

static void *
go_round(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg, n;

    pthread_mutex_lock(&ring[i]);
    pthread_barrier_wait(&start);
    for (n = 0; n < PASSES; n++) {
        unsigned next = (i + 1) % 3;

        pthread_mutex_lock(&ring[next]);
        pthread_mutex_unlock(&ring[i]);
        i = next;
    }
    pthread_mutex_unlock(&ring[i]);
    return NULL;
}

static double
pass(void)
{
    pthread_t threads[2];
    uint64_t begin;
    uintptr_t i;

    pthread_barrier_init(&start, NULL, 2);
    for (i = 0; i < 3; i++)
        pthread_mutex_init(&ring[i], NULL);
    begin = now(CLOCK_PROCESS_CPUTIME_ID);
    for (i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, go_round, (void *)i))
            exit(1);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return (double)(now(CLOCK_PROCESS_CPUTIME_ID) - begin) / PASSES;
}

static void *
idle(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void
have_threads(int n)
{
    static int there;
    pthread_t thread;

    for (; there < n; there++)
        if (pthread_create(&thread, NULL, idle, NULL))
            exit(1);
}

static double
set_rates(long long block, int mutex)
{
    int64_t (*set_block)(int64_t) =
        (int64_t(*)(int64_t))dlsym(RTLD_DEFAULT, "cpprof_block_set_rate");
    int (*set_mutex)(int) =
        (int (*)(int))dlsym(RTLD_DEFAULT, "cpprof_mutex_set_fraction");

    if (set_block && set_mutex) {
        set_block(block);
        set_mutex(mutex);
    }
    return 0;
}

int
main(void)
{
    char line[100];

    while (fgets(line, sizeof line, stdin)) {
        double ns = 0;
        long long block;
        int n;

        if (sscanf(line, "pair %d", &n) == 1) {
            have_threads(n);
            ns = pair();
        } else if (!strncmp(line, "pass", 4)) {
            ns = pass();
        } else if (sscanf(line, "rates %lld %d", &block, &n) == 2) {
            ns = set_rates(block, n);
        }
        printf("%.3f\n", ns);
        fflush(stdout);
    }
    return 0;
}
