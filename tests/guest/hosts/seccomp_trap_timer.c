/* SPDX-License-Identifier: MIT */
/* guest: 3. A handler that blocks all signals, as those of Go's runtime, is not
 * interrupted by that of SIGSYS, which answers calls for a filter, and runs
 * each time that its timer expires, together with ticks: also on a stack that
 * is not a thread's. */
#include "filter.h"

#include <ucontext.h>

enum { TICKS = 60 };

static ucontext_t here, elsewhere;
static volatile sig_atomic_t n_ticks;
static __thread volatile sig_atomic_t inside; /* not another thread */

static void
answer(int number, siginfo_t *info, void *context)
{
    EXPECT(!inside, "in the other handler");
    answer_call(context, -EPERM);
}

static void
on_tick(int number)
{
    inside = 1;
    n_ticks++;
    for (volatile int i = 0; i < 20000; i++)
        ;
    inside = 0;
}

static void
work(void)
{
    int had = n_ticks;

    for (int i = 0; i < 400 && n_ticks < had + TICKS; i++)
        busy_ms(10);
    EXPECT(n_ticks >= had + TICKS, "%d", (int)n_ticks - had);
}

int
main(void)
{
    static char stack[1 << 16];
    struct sock_filter lines[] = {
        FILTER_BEGIN, TRAP(process_vm_readv), TRAP(perf_event_open),
        TRAP(openat), TRAP(tgkill),           ALLOW_OTHERS,
    };
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    struct itimerspec often = {{0, 4000000}, {0, 4000000}};
    struct sigevent event = {.sigev_signo = SIGURG,
                             .sigev_notify = SIGEV_THREAD_ID};
    timer_t timer;

    sigaction(SIGSYS, &action, NULL);
    action = (struct sigaction){.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGURG, &action, NULL);
    event._sigev_un._tid = syscall(SYS_gettid);
    EXPECT(!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer), "timer");
    FILTER_SET(lines, SECCOMP_FILTER_FLAG_TSYNC);
    timer_settime(timer, 0, &often, NULL);
    work();
    getcontext(&elsewhere);
    elsewhere.uc_stack.ss_sp = stack;
    elsewhere.uc_stack.ss_size = sizeof stack;
    elsewhere.uc_link = &here;
    makecontext(&elsewhere, work, 0);
    swapcontext(&here, &elsewhere);
    timer_delete(timer);
    return host_wrong;
}
