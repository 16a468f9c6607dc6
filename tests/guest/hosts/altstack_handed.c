/* SPDX-License-Identifier: MIT */
/* guest: 2. Two threads hand one alternate stack to and fro by bare system
 * calls, as Go does with threads of C that call it, and run on stacks that are
 * too small for any handler meanwhile. What lies below those is not changed. */
#include "host.h"
#include <sys/syscall.h>
#include <ucontext.h>

enum { ROUNDS = 6, SMALL = 2048, BELOW = 16384, MS = 30 };

static char alternate[65536] __attribute__((aligned(4096)));
static unsigned char stacks[2][BELOW + SMALL] __attribute__((aligned(64)));
static ucontext_t mains[2], smalls[2];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void
urgent(int signo)
{
    (void)signo;
}

/* Needs next to no stack, and calls nothing. */
static void
burn(int which)
{
    volatile uint64_t sink = 0;
    uint64_t n = 40000000ull * MS / 100 * host_busy / 100;

    while (n--)
        sink += n;
    swapcontext(&smalls[which], &mains[which]);
}

static void *
work(void *arg)
{
    int which = arg != NULL, round, i, changed;

    for (round = 0; round < ROUNDS; round++) {
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
        stack_t none = {.ss_flags = SS_DISABLE};

        pthread_mutex_lock(&turn);
        memset(stacks[which], 0xa5, sizeof stacks[which]);
        syscall(SYS_sigaltstack, &stack, NULL);
        getcontext(&smalls[which]);
        smalls[which].uc_stack.ss_sp = stacks[which] + BELOW;
        smalls[which].uc_stack.ss_size = SMALL;
        smalls[which].uc_link = NULL;
        makecontext(&smalls[which], (void (*)(void))burn, 1, which);
        swapcontext(&mains[which], &smalls[which]);
        syscall(SYS_sigaltstack, &none, NULL);
        for (i = changed = 0; i < BELOW; i++)
            changed += stacks[which][i] != 0xa5;
        EXPECT(changed == 0, "round %d: %d bytes below are changed", round,
               changed);
        pthread_mutex_unlock(&turn);
        sleep_ms(1);
    }
    return NULL;
}

int
main(void)
{
    struct sigaction action = {.sa_handler = urgent, .sa_flags = SA_ONSTACK};
    pthread_t t;

    sigaction(SIGURG, &action, NULL);
    pthread_create(&t, NULL, work, &t);
    work(NULL);
    pthread_join(t, NULL);
    return host_wrong;
}
