/* SPDX-License-Identifier: MIT */
/* guest: 3. A handler that blocks all signals, and that leaves its arguments
 * and the stack pointer alone to its end, is not interrupted by that of SIGSYS,
 * which answers calls for a filter and takes the same lock. */
#include "filter.h"

#include <ucontext.h>

enum { TICKS = 300 };

static ucontext_t here, elsewhere;
static volatile sig_atomic_t n_ticks;
static __thread volatile sig_atomic_t inside; /* not another thread */

static void
answer(int number, siginfo_t *info, void *context)
{
    EXPECT(!inside, "in the other handler");
    answer_call(context, -EFAULT);
}

static void
on_tick(int number)
{
    inside = 1;
    n_ticks++;
    for (unsigned long left = 3000000; left > 0; left--) /* some ticks long */
        __asm__ volatile("" : "+r"(left));
    inside = 0;
}

/* Without libc, as the runtime of another language does it. */
static long
raw_call(long number, long a, long b, const void *c)
{
#ifdef __x86_64__
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c, 0, 0);
#endif
}

static void
work(void)
{
    int n = TICKS * (int)host_busy / 100;

    for (int i = 0; i < n; i++)
        raise(SIGURG);
    EXPECT(n_ticks == n, "%d", (int)n_ticks);
}

int
main(void)
{
    static char stack[1 << 16];
    struct sock_filter lines[] = {
        FILTER_BEGIN, TRAP(process_vm_readv), TRAP(perf_event_open),
        TRAP(openat), ALLOW_OTHERS,
    };
    struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};

    sigaction(SIGSYS, &action, NULL);
    action = (struct sigaction){.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGURG, &action, NULL);
    EXPECT(!raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, NULL) &&
               !raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program),
           "seccomp");
    getcontext(&elsewhere);
    elsewhere.uc_stack.ss_sp = stack;
    elsewhere.uc_stack.ss_size = sizeof stack;
    elsewhere.uc_link = &here;
    makecontext(&elsewhere, work, 0);
    swapcontext(&here, &elsewhere);
    return host_wrong;
}
