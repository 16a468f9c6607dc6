/* SPDX-License-Identifier: MIT */
/* guest: 3. Under a filter of all threads that has the program's handler of
 * SIGSYS answer some calls, as browsers have it, the program runs on, and ends
 * as it means to. */
#include "filter.h"

static void
answer(int number, siginfo_t *info, void *context)
{
    answer_call(context, -EPERM);
}

int
main(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,       TRAP(process_vm_readv), TRAP(perf_event_open),
        TRAP(timer_create), TRAP(openat),           TRAP(getdents64),
        TRAP(statx),        TRAP(close_range),      TRAP(tgkill),
        TRAP(socket),       ALLOW_OTHERS,
    };
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    pthread_t busy;

    busy_ms(20);
    sigaction(SIGSYS, &action, NULL);
    FILTER_SET(lines, SECCOMP_FILTER_FLAG_TSYNC);
    EXPECT(syscall(SYS_socket, 0, 0, 0) == -1 && errno == EPERM, "not asked");
    busy = start_busy(80);
    for (int i = 0; i < 30; i++) {
        const struct timespec t = {0, 2000000};

        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
