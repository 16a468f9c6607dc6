/* SPDX-License-Identifier: MIT */
/* guest: 2. A program, or a library in front of libc, that has a
 * clock_gettime() of its own, with a plain lock in it, as libfaketime has: four
 * threads that read clocks by it all the time go on. */
#include "host.h"
#include <sys/syscall.h>

enum { N_THREADS = 4, N_READS = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    int failed;

    pthread_mutex_lock(&lock);
    failed = (int)syscall(SYS_clock_gettime, clock, t);
    pthread_mutex_unlock(&lock);
    return failed;
}

static void *
read_clocks(void *arg)
{
    struct timespec t;

    for (int i = 0; i < N_READS; i++)
        clock_gettime(CLOCK_MONOTONIC, &t);
    return arg;
}

int
main(void)
{
    pthread_t threads[N_THREADS];
    pid_t pid;

    alarm(40);
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, read_clocks, NULL);
    for (int i = 0; i < 20; i++) {
        pid = fork();
        if (pid == 0) {
            alarm(20);
            _exit(3);
        }
        EXPECT(status_of(pid) == 3, "a child ended otherwise");
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return host_wrong;
}
