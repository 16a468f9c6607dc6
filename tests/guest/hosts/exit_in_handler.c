/* SPDX-License-Identifier: MIT */
/* guest: 2. exit() never waits for us without a bound: called by a handler that
 * interrupted pthread_create or a lock, it ends the process in the 30 s that
 * docs/design.md tells. */
#include "host.h"
#include <sys/time.h>

enum { WORK_US = 8000 }; /* until the signal comes */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void
leave(int signo)
{
    _exit(signo == SIGALRM ? 5 : 6);
}

static void *
short_thread(void *arg)
{
    return arg;
}

/* exit() is not for handlers, but programs do it, and glibc bears it where no
 * stream is locked. */
static void
leave_by_exit(int signo)
{
    exit(signo == SIGALRM ? 5 : 6);
}

static void
make_threads(void)
{
    for (;;) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, short_thread, NULL) == 0)
            pthread_join(thread, NULL);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

int
main(void)
{
    for (int i = 0; i < 30; i++) {
        uint64_t start = host_ns(CLOCK_MONOTONIC);
        pid_t pid = fork();

        if (pid == 0) {
            struct itimerval when = {{0, 0}, {0, 15000 + 777 * i}};

            signal(SIGALRM, i % 2 ? leave : leave_by_exit);
            setitimer(ITIMER_REAL, &when, NULL);
            usleep((useconds_t)when.it_value.tv_usec - WORK_US);
            make_threads();
        }
        EXPECT(status_of(pid) == 5, "child %d ended otherwise", i);
        EXPECT(host_ns(CLOCK_MONOTONIC) - start < 35000000000u,
               "child %d took %d ms", i,
               (int)((host_ns(CLOCK_MONOTONIC) - start) / 1000000));
    }
    return host_wrong;
}
