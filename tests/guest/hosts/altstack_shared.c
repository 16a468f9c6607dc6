/* SPDX-License-Identifier: MIT */
/* guest: 2. All threads have the same alternate stack, for a report of a crash
 * that ends the process, as those of varnishd; one has said so by the bare
 * system call. */
#include "host.h"
#include <sys/syscall.h>

enum { THREADS = 8, MS = 300 };

static char alternate[65536] __attribute__((aligned(4096)));
static unsigned n_done;

static void
crashed(int signo)
{
    (void)signo;
    _exit(3);
}

static void *
work(void *arg)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    uint64_t end;
    volatile uint64_t n = 0;

    if (arg)
        syscall(SYS_sigaltstack, &stack, NULL);
    else
        sigaltstack(&stack, NULL);
    end = host_ns(CLOCK_THREAD_CPUTIME_ID) + MS * 1000000ull * host_busy / 100;
    while (host_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 2000; i++)
            n += (uint64_t)i * n;
    __atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

int
main(void)
{
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK};
    pthread_t t[THREADS];
    int i;

    sigaction(SIGSEGV, &action, NULL);
    for (i = 0; i < THREADS; i++)
        EXPECT(!pthread_create(&t[i], NULL, work, i == 3 ? work : NULL),
               "no thread");
    for (i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    EXPECT(n_done == THREADS, "%u of them", n_done);
    return host_wrong;
}
