/* SPDX-License-Identifier: MIT */
/* guest: 3. A handler of SIGSYS that takes its time to answer a call, as that
 * of a sandbox asks another process, runs to its end, also with ticks in it. */
#include "filter.h"

enum { CALLS = 40 };

static int n_asked;

static void
answer(int number, siginfo_t *info, void *context)
{
    if (info->si_syscall == SYS_socket) {
        n_asked++;
        busy_ms(4);
    }
    answer_call(context, -EPERM);
}

static void *
ask(void *on)
{
    for (int i = 0; i < CALLS; i++)
        EXPECT(syscall(SYS_socket, 0, 0, 0) == -1 && errno == EPERM,
               "not asked");
    return NULL;
}

int
main(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,       TRAP(process_vm_readv), TRAP(perf_event_open),
        TRAP(timer_create), TRAP(openat),           TRAP(tgkill),
        TRAP(socket),       ALLOW_OTHERS,
    };
    struct sigaction action = {.sa_sigaction = answer,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t other = {.ss_size = 1 << 16};
    pthread_t thread;

    busy_ms(20);
    sigaction(SIGSYS, &action, NULL);
    FILTER_SET(lines, SECCOMP_FILTER_FLAG_TSYNC);
    pthread_create(&thread, NULL, ask, NULL);
    pthread_join(thread, NULL);
    /* On a stack that is not the thread's. */
    other.ss_sp = malloc(other.ss_size);
    sigaltstack(&other, NULL);
    ask(NULL);
    EXPECT(n_asked == 2 * CALLS, "%d", n_asked);
    return host_wrong;
}
