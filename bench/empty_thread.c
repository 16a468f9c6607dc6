/* SPDX-License-Identifier: MIT */
/* A library with nothing in it but a thread that sleeps, in the process and in
 * each child: the least that a sampler can cost which is to begin by itself. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

static void *
sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void
begin(void)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attr, sleep_on, NULL);
    pthread_attr_destroy(&attr);
}

__attribute__((constructor)) static void
first(void)
{
    pthread_atfork(NULL, NULL, begin);
    begin();
}
