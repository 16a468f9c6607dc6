/* SPDX-License-Identifier: MIT */
/* guest: 4. A SIGPROF that is blocked and pending when a thread is made stays
 * pending until the program takes it. */
#include "host.h"

static void *
nothing(void *arg)
{
    return arg;
}

int
main(void)
{
    pthread_t thread;
    sigset_t set;
    int i, got;

    busy_ms(60); /* a young process is not sampled yet */
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (i = 0; i < 50; i++) {
        kill(getpid(), SIGPROF);
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
        sigwait(&set, &got);
        EXPECT(got == SIGPROF, "got %d", got);
    }
    return host_wrong;
}
