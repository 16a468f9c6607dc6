/* SPDX-License-Identifier: MIT */
/* guest: 2. The first wait of a thread is that of its child of vfork, which has
 * its memory and ends; then it waits itself, among many others. */
#include "host.h"
#include <semaphore.h>

enum { N_THREADS = 300, ROUNDS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all;
static sem_t is_taken, is_done;
static long n;

static void *
holder(void *arg)
{
    pthread_mutex_lock(&lock);
    sem_post(&is_taken);
    sleep_ms(50);
    pthread_mutex_unlock(&lock);
    sleep_ms(20);
    sem_post(&is_done);
    return arg;
}

static void *
waiter(void *arg)
{
    int i;

    for (i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&all);
        pthread_mutex_lock(&lock);
        n++;
        sched_yield();
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void
child_waits(void)
{
    struct timespec t;
    pthread_t thread;
    pid_t pid;
    int failed, status;

    pthread_create(&thread, NULL, holder, NULL);
    while (sem_trywait(&is_taken) != 0)
        sched_yield();
    pid = vfork();
    if (pid == 0) {
        pthread_mutex_lock(&lock);
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec = (t.tv_nsec + 5000000) % 1000000000;
        failed = pthread_cond_timedwait(&changed, &lock, &t);
        pthread_mutex_unlock(&lock);
        sleep_ms(5);
        while (sem_wait(&is_done) != 0)
            continue;
        _exit(failed == ETIMEDOUT ? 3 : 4);
    }
    status = status_of(pid);
    EXPECT(status == 3, "the child ended with %d", status);
    pthread_join(thread, NULL);
}

static void *
begin(void *arg)
{
    child_waits();
    return waiter(arg);
}

int
main(void)
{
    pthread_t threads[N_THREADS];
    int i;

    sem_init(&is_taken, 0, 0);
    sem_init(&is_done, 0, 0);
    pthread_barrier_init(&all, NULL, N_THREADS);
    for (i = 0; i < N_THREADS; i++) {
        int failed =
            pthread_create(&threads[i], NULL, i ? waiter : begin, NULL);

        EXPECT(failed == 0, "pthread_create: %s", strerror(failed));
    }
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(n == N_THREADS * ROUNDS, "%ld waits", n);
    puts("runs");
    return host_wrong;
}
