/* SPDX-License-Identifier: MIT */
/*
 * How true the profiles of waits are: locks_truth [BLOCK_NS [MUTEX_N]]
 *
 * Threads take something, hold it for a time by the clock, give it up, and do
 * something else for as long. Each reads the clock around every call that did
 * not get it at once; the sums of the block and of the mutex profile stand
 * beside what they read, as a multiple of it.
 */
#include <cpprof/profiles.h>
#include <cpprof/records.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define SECONDS     0.5

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- what is taken ---------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static bool is_taken; /* by guard */

/* Whether it was had at once; a thread that did not get it calls the other. */
struct kind {
    const char *name;
    bool (*try)(void);
    void (*take)(void);
    void (*give)(void);
};

static bool
try_mutex(void)
{
    return !pthread_mutex_trylock(&mutex);
}

static void
take_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void
give_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}

static bool
try_writer(void)
{
    return !pthread_rwlock_trywrlock(&rwlock);
}

static void
take_writer(void)
{
    pthread_rwlock_wrlock(&rwlock);
}

static void
give_rwlock(void)
{
    pthread_rwlock_unlock(&rwlock);
}

static bool
try_semaphore(void)
{
    return !sem_trywait(&semaphore);
}

static void
take_semaphore(void)
{
    while (sem_wait(&semaphore))
        ;
}

static void
give_semaphore(void)
{
    sem_post(&semaphore);
}

/* A lock made of a condition, and of a mutex that is waited for, too. */
static bool
try_condition(void)
{
    return false;
}

static __thread int64_t own_ns, own_mutex_ns; /* what was waited */

static void
lock_guard(void)
{
    int64_t start;

    if (!pthread_mutex_trylock(&guard))
        return;
    start = now_ns();
    pthread_mutex_lock(&guard);
    own_mutex_ns += now_ns() - start;
}

static void
take_condition(void)
{
    lock_guard();
    while (is_taken) {
        int64_t start = now_ns();

        pthread_cond_wait(&given, &guard);
        own_ns += now_ns() - start;
    }
    is_taken = true;
    pthread_mutex_unlock(&guard);
}

static void
give_condition(void)
{
    lock_guard();
    is_taken = false;
    pthread_mutex_unlock(&guard);
    pthread_cond_signal(&given);
}

static const struct kind kinds[] = {
    {"mutex", try_mutex, take_mutex, give_mutex},
    {"rwlock", try_writer, take_writer, give_rwlock},
    {"semaphore", try_semaphore, take_semaphore, give_semaphore},
    {"condition", try_condition, take_condition, give_condition},
};

/* ---- threads ---------------------------------------------------------- */

static const struct kind *kind;
static int64_t hold_ns, end_ns;
static struct {
    _Alignas(64) int64_t ns;
    int64_t mutex_ns;
    int64_t n;
} waited[THREADS_MAX];

/* Long ones are slept, as there are more threads than processors. */
static void
pass(int64_t ns)
{
    int64_t until = now_ns() + ns;
    struct timespec t = {0, ns};

    if (ns >= 100000)
        nanosleep(&t, NULL);
    while (now_ns() < until)
        ;
}

static void
take(int which)
{
    int64_t start;

    if (kind->try())
        return;
    start = now_ns();
    kind->take();
    if (kind->take != take_condition)
        own_ns += now_ns() - start;
    waited[which].n++;
}

static void *
work(void *arg)
{
    intptr_t which = (intptr_t)arg;

    while (now_ns() < end_ns) {
        take((int)which);
        pass(hold_ns);
        kind->give();
        pass(hold_ns);
    }
    if (kind->take == take_mutex || kind->take == take_writer)
        own_mutex_ns += own_ns;
    else
        own_ns += own_mutex_ns;
    waited[which].ns = own_ns;
    waited[which].mutex_ns = own_mutex_ns;
    return NULL;
}

/* ---- the profiles ----------------------------------------------------- */

typedef enum cpprof_status
records_fn(struct cpprof_wait_record *records, size_t n, size_t *n_records,
           struct cpprof_error *error);

static double
sum_ns(records_fn *records)
{
    static struct cpprof_wait_record all[10000];
    size_t i, n = 0;
    double ns = 0;

    if (records(all, 10000, &n, NULL) || n > 10000)
        abort();
    for (i = 0; i < n; i++)
        ns += (double)all[i].delay_ns;
    return ns;
}

static void
measure(int n_threads, int64_t block_ns, int mutex_n)
{
    double block = sum_ns(cpprof_block_records);
    double mutex_ns = sum_ns(cpprof_mutex_records);
    double own = 0, own_mutex = 0, n = 0;
    pthread_t threads[THREADS_MAX];
    intptr_t i;

    cpprof_block_set_rate(block_ns);
    cpprof_mutex_set_fraction(mutex_n);
    end_ns = now_ns() + (int64_t)(SECONDS * 1e9);
    for (i = 0; i < n_threads; i++) {
        waited[i].ns = waited[i].n = 0;
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            abort();
    }
    for (i = 0; i < n_threads; i++)
        while (pthread_tryjoin_np(threads[i], NULL)) /* joining is a wait */
            usleep(1000);
    cpprof_block_set_rate(0);
    cpprof_mutex_set_fraction(0);
    block = sum_ns(cpprof_block_records) - block;
    mutex_ns = sum_ns(cpprof_mutex_records) - mutex_ns;
    for (i = 0; i < n_threads; i++) {
        own += (double)waited[i].ns;
        own_mutex += (double)waited[i].mutex_ns;
        n += (double)waited[i].n;
    }
    printf("  %-10s %2d threads, held %6.1f us: %8.0f waits of %8.2f us, "
           "block %.3f",
           kind->name, n_threads, (double)hold_ns / 1e3, n,
           n ? own / n / 1e3 : 0, block / own);
    if (own_mutex > 0)
        printf(", mutex %.3f", mutex_ns / own_mutex);
    putchar('\n');
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    static const int64_t holds[] = {200, 1000, 10000, 100000, 1000000};
    static const int numbers[] = {2, 4, 16};
    int64_t block_ns = argc > 1 ? atoll(argv[1]) : 10000;
    int mutex_n = argc > 2 ? atoi(argv[2]) : 1;
    size_t k, h, t;

    sem_init(&semaphore, 0, 1);
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (h = 0; h < sizeof holds / sizeof *holds; h++)
            for (t = 0; t < sizeof numbers / sizeof *numbers; t++) {
                kind = &kinds[k];
                hold_ns = holds[h];
                measure(numbers[t], block_ns, mutex_n);
            }
    return 0;
}
