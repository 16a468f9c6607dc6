/* SPDX-License-Identifier: MIT */
/* guest: 4. Never a signal to a thread that blocks it: sigwait on a full set,
 * as daemons have it, returns what was sent and nothing else. */
#include "host.h"

static unsigned n_got; /* a second one that is pending is none */

static void *
waits(void *arg)
{
    sigset_t all;
    int got = 0;

    sigfillset(&all);
    for (int i = 0; i < 3; i++) {
        EXPECT(sigwait(&all, &got) == 0, "sigwait");
        EXPECT(got == SIGUSR1, "sigwait returned %d", got);
        __atomic_fetch_add(&n_got, 1, __ATOMIC_RELEASE);
    }
    return arg;
}

int
main(void)
{
    pthread_t thread, busy;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_create(&thread, NULL, waits, NULL);
    busy = start_busy(200);
    for (unsigned i = 0; i < 3; i++) {
        sleep_ms(60);
        while (__atomic_load_n(&n_got, __ATOMIC_ACQUIRE) < i)
            sleep_ms(1);
        pthread_kill(thread, SIGUSR1);
    }
    pthread_join(busy, NULL);
    pthread_join(thread, NULL);
    return host_wrong;
}
