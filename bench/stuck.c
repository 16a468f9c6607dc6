/* SPDX-License-Identifier: MIT */
/*
 * A program with a heap of so many MB, so many threads that sleep, and one that
 * sleeps for a millisecond at a time and sees how late it wakes. For each line
 * of input it answers one:
 *
 *     cross    two more threads take two locks in opposite orders; answers when
 *              both had asked for their second one, ns of CLOCK_MONOTONIC
 *     late     answers how many ms the thread was late since the last "late"
 *
 *     stuck MB THREADS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Bytes of a block. */
#define BLOCK 256

static void **last; /* block; each leads to the one before */
static _Atomic uint64_t latest_ns;

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
fill(size_t mb)
{
    size_t n = mb * 1000000 / BLOCK;
    void **block;

    while (n--) {
        block = malloc(BLOCK);
        memset(block, 1, BLOCK);
        *block = last;
        last = block;
    }
}

static void *
sleep_on(void *arg)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    return arg;
}

static void *
watch(void *arg)
{
    for (;;) {
        const uint64_t due = now_ns() + 1000000;

        usleep(1000);
        if (now_ns() - due > latest_ns)
            latest_ns = now_ns() - due;
    }
    return arg;
}

struct pair {
    pthread_mutex_t locks[2];
    pthread_barrier_t both;
    _Atomic int next, n_asked;
    _Atomic uint64_t asked_ns; /* the later of both */
};

static void *
cross(void *arg)
{
    struct pair *pair = arg;
    const int own = pair->next++;

    pthread_mutex_lock(&pair->locks[own]);
    pthread_barrier_wait(&pair->both);
    pair->asked_ns = now_ns();
    pair->n_asked++;
    pthread_mutex_lock(&pair->locks[!own]);
    return arg;
}

static void
start(void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    if (pthread_create(&thread, &attributes, run, arg))
        exit(1);
}

static uint64_t
make_deadlock(void)
{
    struct pair *pair = calloc(1, sizeof *pair);

    pthread_mutex_init(&pair->locks[0], NULL);
    pthread_mutex_init(&pair->locks[1], NULL);
    pthread_barrier_init(&pair->both, NULL, 2);
    start(cross, pair);
    start(cross, pair);
    while (pair->n_asked < 2)
        usleep(1000);
    return pair->asked_ns;
}

int
main(int argc, char **argv)
{
    long threads = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
    char line[32];

    fill(argc > 1 ? strtoul(argv[1], NULL, 10) : 100);
    while (threads--)
        start(sleep_on, NULL);
    start(watch, NULL);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'c')
            printf("%llu\n", (unsigned long long)make_deadlock());
        else
            printf("%.3f\n", (double)atomic_exchange(&latest_ns, 0) * 1e-6);
        fflush(stdout);
    }
    _exit(0);
}
