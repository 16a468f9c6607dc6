/* SPDX-License-Identifier: MIT */
/* guest: 4. Coroutines that are made on an alternate signal stack, as GNU Pth
 * does: what the handler left there is there when it is jumped to. */
#include "host.h"
#include <setjmp.h>

enum { STACK = 65536, COROUTINES = 16, WORDS = 64 };

static struct coroutine {
    char stack[STACK] __attribute__((aligned(64)));
    sigjmp_buf begin;
    bool is_good;
} coroutines[COROUTINES];
static struct coroutine *made;
static sigjmp_buf caller;
static volatile sig_atomic_t was_called;

/* Called again by a jump: what it remembers is still on its stack. */
static __attribute__((noinline)) void
begin(struct coroutine *c)
{
    volatile uint64_t words[WORDS];
    bool is_good = true;

    for (int i = 0; i < WORDS; i++)
        words[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
    if (sigsetjmp(c->begin, 0) == 0)
        return;
    for (int i = 0; i < WORDS; i++)
        is_good &= words[i] == (uint64_t)i * 0x9e3779b97f4a7c15u;
    made->is_good = is_good;
    siglongjmp(caller, 1);
}

static void
on_usr1(int signal)
{
    (void)signal;
    begin(made);
    was_called = 1;
}

static void
make(struct coroutine *c)
{
    struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK},
                     old_action;
    stack_t stack = {.ss_sp = c->stack, .ss_size = STACK}, old_stack;
    sigset_t one, old, waiting;

    made = c;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, &old);
    sigaction(SIGUSR1, &action, &old_action);
    EXPECT(sigaltstack(&stack, &old_stack) == 0, "sigaltstack");
    was_called = 0;
    kill(getpid(), SIGUSR1);
    sigfillset(&waiting);
    sigdelset(&waiting, SIGUSR1);
    while (!was_called)
        sigsuspend(&waiting);
    busy_ms(25); /* a machine with more to do would be as slow */
    stack.ss_flags = SS_DISABLE;
    EXPECT(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    if (!(old_stack.ss_flags & SS_DISABLE))
        sigaltstack(&old_stack, NULL);
    sigaction(SIGUSR1, &old_action, NULL);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

int
main(void)
{
    busy_ms(30);
    for (volatile int i = 0; i < COROUTINES; i++) {
        make(&coroutines[i]);
        if (sigsetjmp(caller, 0) == 0)
            siglongjmp(coroutines[i].begin, 1);
        EXPECT(coroutines[i].is_good, "a coroutine has lost its variables");
    }
    return host_wrong;
}
