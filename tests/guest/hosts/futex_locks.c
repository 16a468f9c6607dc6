/* SPDX-License-Identifier: MIT */
/* guest: 4. A program with locks of its own, by bare futex calls that are not
 * asked again: each wait ends by a wake, by its time, or because the word has
 * changed, and nobody is in the lock beside its owner. */
#include "host.h"

#include <linux/futex.h>
#include <sys/syscall.h>

enum { THREADS = 4, ROUNDS = 3000 };

static uint32_t lock; /* 1: held, 2: held, and somebody waits */
static unsigned n_inside, n_rounds, n_odd;

static long
futex(uint32_t *word, int op, uint32_t value, const struct timespec *t)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, t, NULL, 0);
}

static void
take(const struct timespec *t)
{
    uint32_t free_word = 0;

    if (__atomic_compare_exchange_n(&lock, &free_word, 1, false,
                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock, 2, __ATOMIC_ACQUIRE))
        if (futex(&lock, FUTEX_WAIT, 2, t) != 0 && errno != EAGAIN &&
            errno != ETIMEDOUT)
            __atomic_fetch_add(&n_odd, 1, __ATOMIC_RELAXED);
}

static void
give(void)
{
    if (__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE) == 2)
        futex(&lock, FUTEX_WAKE, 1, NULL);
}

static void *
go(void *arg)
{
    static const struct timespec soon = {0, 300000};

    for (unsigned i = 0; i < ROUNDS; i++) {
        take(i & 1 ? &soon : NULL);
        if (__atomic_fetch_add(&n_inside, 1, __ATOMIC_RELAXED))
            n_odd++;
        for (volatile unsigned k = 0; k < 20 * host_busy; k++)
            continue;
        n_rounds++;
        __atomic_fetch_sub(&n_inside, 1, __ATOMIC_RELAXED);
        give();
        for (volatile unsigned k = 0; k < 10 * host_busy; k++)
            continue;
    }
    return arg;
}

int
main(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, go, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(n_rounds == THREADS * ROUNDS, "%u rounds", n_rounds);
    EXPECT(n_odd == 0, "a wait ended otherwise, or two were inside");
    return host_wrong;
}
