/* SPDX-License-Identifier: MIT */
/* guest: 3. Under seccomp that refuses what a profiler would like: the program
 * runs on unharmed. */
#include "filter.h"

int
main(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        REFUSE(perf_event_open),
        REFUSE(process_vm_readv),
        REFUSE(openat),
        REFUSE(timer_create),
        REFUSE(timer_settime),
        REFUSE(tgkill),
        REFUSE(rt_tgsigqueueinfo),
        REFUSE(unshare),
        REFUSE(memfd_create),
        REFUSE(socket),
        ALLOW_OTHERS,
    };
    pthread_t busy;
    pid_t pid;

    busy_ms(20);
    FILTER_SET(lines, 0);
    busy = start_busy(80);
    for (int i = 0; i < 30; i++) {
        const struct timespec t = {0, 2000000};

        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    }
    pthread_join(busy, NULL);
    pid = fork();
    if (pid == 0) {
        busy_ms(30);
        exit(3);
    }
    EXPECT(status_of(pid) == 3, "the child ended otherwise");
    return host_wrong;
}
