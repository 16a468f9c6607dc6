/* SPDX-License-Identifier: MIT */
/*
 * Two threads that compute, allocate and share a lock, in stacks of 20 frames:
 * push.c ROUNDS. The same work each time, whoever looks.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define DEPTH 18

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t shared;
static long rounds;

__attribute__((noipa)) static uint64_t
leaf(uint64_t x)
{
    uint64_t *block = malloc(64 + x % 512);
    int i;

    for (i = 0; i < 400; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    block[x % 8] = x;
    x ^= block[x % 8];
    free(block);
    return x;
}

__attribute__((noipa)) static uint64_t
descend(int depth, uint64_t x)
{
    x = depth < DEPTH ? descend(depth + 1, x + 1) : leaf(x);
    return x ^ (uint64_t)depth;
}

static void *
work(void *arg)
{
    uint64_t x = (uintptr_t)arg;
    long i;

    for (i = 0; i < rounds; i++) {
        x += descend(0, x);
        if (i % 64 == 0) {
            pthread_mutex_lock(&lock);
            shared = x;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

int
main(int argc, char **argv)
{
    pthread_t threads[2];
    uintptr_t i;

    rounds = argc > 1 ? atol(argv[1]) : 1000000;
    for (i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
            return 1;
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
