/* SPDX-License-Identifier: MIT */
/*
 * A program that is linked statically with libc, as for a container that has
 * nothing else in it. Its profiles get their names when they are looked at.
 *
 *     cc -static -g static_program.c `pkg-config --libs cpprof-static`
 *     CPPROF=cpu,heap,block,out=%k.pb.gz ./a.out
 *     cpprof top cpu.pb.gz
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_at_lock;
static char *kept[200];

static void
burn_cpu(void)
{
    static _Thread_local unsigned numbers[1000];
    clock_t end = clock() + CLOCKS_PER_SEC / 4;
    unsigned i;

    while (clock() < end)
        for (i = 0; i < 1000; i++)
            numbers[i] = numbers[i] * 31 + i;
}

static void
keep_memory(void)
{
    size_t i;

    for (i = 0; i < sizeof kept / sizeof *kept; i++)
        if ((kept[i] = malloc(100000)))
            memset(kept[i], (int)i, 100000);
}

static void *
work(void *arg)
{
    (void)arg;
    sem_post(&is_at_lock);
    pthread_mutex_lock(&lock);
    burn_cpu();
    pthread_mutex_unlock(&lock);
    return NULL;
}

int
main(void)
{
    pthread_t thread;

    keep_memory();
    pthread_mutex_lock(&lock);
    if (sem_init(&is_at_lock, 0, 0) ||
        pthread_create(&thread, NULL, work, NULL))
        return 1;
    /* A busy machine may let a new thread wait for longer than this sleep. */
    while (sem_wait(&is_at_lock))
        continue;
    usleep(50000);
    pthread_mutex_unlock(&lock);
    return pthread_join(thread, NULL) != 0;
}
