/* SPDX-License-Identifier: MIT */
/* guest: siglongjmp out of a handler, out of a wait, and from stack to
 * stack. */
#include "host.h"
#include <setjmp.h>
#include <ucontext.h>

static sigjmp_buf back;
static ucontext_t here, there;
static int n_turns;

static void
jump(int signal)
{
    siglongjmp(back, signal);
}

static void
turns(void)
{
    for (;;) {
        n_turns++;
        busy_ms(1);
        swapcontext(&there, &here);
    }
}

int
main(void)
{
    static char stack[65536];
    volatile int n = 0;

    signal(SIGALRM, jump);
    while (n < 5) {
        if (sigsetjmp(back, 1) == 0) {
            ualarm(5000, 0);
            if (n % 2)
                pause();
            busy_ms(1000);
        }
        n++;
    }
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    makecontext(&there, turns, 0);
    for (int i = 0; i < 50; i++)
        swapcontext(&here, &there);
    EXPECT(n_turns == 50, "%d turns", n_turns);
    return host_wrong;
}
