/* SPDX-License-Identifier: MIT */
/*
 * How true the profiles of waits are, by how long a lock is held:
 *
 *     locks_truth US...   two threads that each sleep with the mutex, and
 *                         without, for US microseconds on average
 *
 * What they measure around the call has the wake-up in it, which the mutex
 * profile does not charge to anybody.
 */
#include <cpprof/profiles.h>
#include <cpprof/records.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAITED_NS 5000 /* less was no wait */

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int times, us;
static struct {
    _Alignas(64) int64_t ns;
    int64_t n;
} waited[2];

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
sleep_up_to(long ns, unsigned *seed)
{
    const struct timespec t = {
        0, (long)((double)rand_r(seed) / RAND_MAX * (double)ns)};

    nanosleep(&t, NULL);
}

static void *
lock_and_hold(void *arg)
{
    intptr_t which = (intptr_t)arg;
    unsigned seed = (unsigned)which + 1;
    int i;

    for (i = 0; i < times; i++) {
        int64_t ns = now_ns();

        pthread_mutex_lock(&m);
        ns = now_ns() - ns;
        if (ns > WAITED_NS) {
            waited[which].ns += ns;
            waited[which].n++;
        }
        sleep_up_to(2000L * us, &seed);
        pthread_mutex_unlock(&m);
        sleep_up_to(2000L * us, &seed);
    }
    return NULL;
}

typedef enum cpprof_status
records_fn(struct cpprof_wait_record *records, size_t n, size_t *n_records,
           struct cpprof_error *error);

static double
sum_ns(records_fn *records)
{
    static struct cpprof_wait_record all[1000];
    size_t i, n = 0;
    double ns = 0;

    if (records(all, 1000, &n, NULL) || n > 1000)
        abort();
    for (i = 0; i < n; i++)
        ns += (double)all[i].delay_ns;
    return ns;
}

static void
measure(void)
{
    double block = sum_ns(cpprof_block_records);
    double mutex = sum_ns(cpprof_mutex_records), own;
    pthread_t threads[2];
    intptr_t i;

    times = 300000 / (us + 50);
    waited[0].ns = waited[1].ns = waited[0].n = waited[1].n = 0;
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    for (i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, lock_and_hold, (void *)i))
            abort();
    for (i = 0; i < 2; i++)
        while (pthread_tryjoin_np(threads[i], NULL)) /* joining is a wait */
            usleep(1000);
    cpprof_block_set_rate(0);
    own = (double)(waited[0].ns + waited[1].ns);
    block = sum_ns(cpprof_block_records) - block;
    mutex = sum_ns(cpprof_mutex_records) - mutex;
    printf("  held %5d us: %6lld waits of %6.1f us, block %.3f, mutex %.3f, "
           "%.1f us each not charged\n",
           us, (long long)(waited[0].n + waited[1].n),
           own / 1e3 / (double)(waited[0].n + waited[1].n), block / own,
           mutex / own,
           (own - mutex) / 1e3 / (double)(waited[0].n + waited[1].n));
}

int
main(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        us = atoi(argv[i]);
        if (us > 0)
            measure();
    }
    return 0;
}
