/* SPDX-License-Identifier: MIT */
/* guest: 2. All threads have the same alternate stack, for a report of a crash
 * that ends the process, as those of varnishd; one has said so by the bare
 * system call. */
#include "host.h"
#include <sys/syscall.h>

enum { THREADS = 8, MS = 300, DEPTH = 60 };

static char alternate[65536] __attribute__((aligned(4096)));
static unsigned n_done;

static void
crashed(int signo)
{
    (void)signo;
    _exit(3);
}

/* A deep stack takes long to walk. */
static void
burn(int depth)
{
    if (depth > 0)
        burn(depth - 1);
    else
        busy_ms(MS);
    __asm__ volatile("" : : : "memory");
}

static void *
work(void *arg)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};

    if (arg)
        syscall(SYS_sigaltstack, &stack, NULL);
    else
        sigaltstack(&stack, NULL);
    burn(DEPTH);
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
