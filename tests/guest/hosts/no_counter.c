/* SPDX-License-Identifier: MIT */
/* guest: 2. A program that forbids itself to read the processor's counter, so
 * that a run can be repeated: what would read it, libc's clocks among it, gets
 * a SIGSEGV. Its threads allocate, wait for locks and compute, and so does a
 * child that lives for more than a second. */
#include "host.h"

#include "arch/regs.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t
kernel_ns(clockid_t clock)
{
    struct timespec t;

    cpprof__syscall(SYS_clock_gettime, clock, (long)&t, 0, 0, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
rest(void)
{
    struct timespec t = {0, 1000000};

    nanosleep(&t, NULL);
}

static void *
work(void *ms)
{
    uint64_t end =
        kernel_ns(CLOCK_MONOTONIC) + (uint64_t)(uintptr_t)ms * 1000000u;

    while (kernel_ns(CLOCK_MONOTONIC) < end) {
        pthread_mutex_lock(&mutex);
        free(malloc(100000));
        rest();
        pthread_mutex_unlock(&mutex);
        for (volatile unsigned i = 0; i < 750 * host_busy; i++)
            free(malloc(10));
    }
    return ms;
}

static void
work_all(unsigned ms)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)ms);
    work((void *)(uintptr_t)ms);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int
main(void)
{
    pid_t pid;

    work_all(100);
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
        return 0; /* this kernel cannot */
    work_all(300);
    pid = fork();
    if (pid == 0) {
        work_all(1300);
        _exit(3);
    }
    EXPECT(status_of(pid) == 3, "a child ended otherwise");
    return host_wrong;
}
