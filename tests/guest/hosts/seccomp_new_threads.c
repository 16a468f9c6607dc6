/* SPDX-License-Identifier: MIT */
/* guest: 3. A program whose filter refuses what libc needs in a new thread,
 * which it makes no more of, runs on and ends as it means to. */
#include "filter.h"

enum { STATUS = 7 };

static void
refuse(int number)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        FILTER_CASE(number, SECCOMP_RET_ERRNO | EPERM),
        ALLOW_OTHERS,
    };

    FILTER_SET(lines, 0);
}

static void
live(int number, bool in_haste)
{
    sleep_ms(1300); /* what ends sooner leaves no profile */
    refuse(number);
    busy_ms(40);
    EXPECT(setgid(getgid()) == 0, "setgid: %s", strerror(errno));
    busy_ms(40);
    if (in_haste)
        _exit(host_wrong ? host_wrong : STATUS);
    exit(host_wrong ? host_wrong : STATUS);
}

int
main(void)
{
    static const int numbers[] = {SYS_rseq, SYS_set_robust_list, SYS_mprotect,
                                  SYS_clone3};
    pid_t pids[8];
    int i, status;

    busy_ms(20);
    for (i = 0; i < 8; i++)
        if ((pids[i] = fork()) == 0)
            live(numbers[i / 2], i % 2);
    for (i = 0; i < 8; i++) {
        status = status_of(pids[i]);
        EXPECT(status == STATUS, "call %d, %s: it ended with %d",
               numbers[i / 2], i % 2 ? "_exit" : "exit", status);
    }
    refuse(SYS_rseq);
    return host_wrong;
}
