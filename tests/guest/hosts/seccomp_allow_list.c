/* SPDX-License-Identifier: MIT */
/* guest: 3. A program of one thread that lets the kernel refuse all calls but
 * the few that it makes itself runs on unharmed, fails where it would fail,
 * and ends as it means to: by exit() or by _exit(). */
#include "filter.h"

enum { STATUS = 7 };

static void
confine(int sys)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        ALLOW(read),
        ALLOW(write),
        ALLOW(brk),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(madvise),
        ALLOW(clock_gettime),
        ALLOW(clock_nanosleep),
        ALLOW(newfstatat),
        ALLOW(rt_sigreturn),
        ALLOW(exit),
        ALLOW(exit_group),
        FILTER_END(SECCOMP_RET_ERRNO | (unsigned)sys),
    };

    FILTER_SET(lines, 0);
}

static void
live(int sys, bool in_haste, unsigned before_ms)
{
    alarm(50);
    sleep_ms(before_ms);
    confine(sys);
    for (int i = 0; i < 20; i++) {
        const struct timespec t = {0, 1000000};
        char *block = malloc(200000);

        memset(block, 1, 200000);
        busy_ms(5);
        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
        EXPECT(setgid(getgid()) == -1 && errno == sys, "setgid: %s",
               strerror(errno));
        free(block);
    }
    if (in_haste)
        _exit(host_wrong ? host_wrong : STATUS);
    exit(host_wrong ? host_wrong : STATUS);
}

int
main(void)
{
    static const int codes[] = {EPERM, ENOSYS};
    /* A child is sampled from some moment on. */
    static const unsigned before[] = {0, 1300};

    busy_ms(20);
    for (int i = 0; i < 8; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
            live(codes[i & 1], i & 2, before[i >> 2]);
        status = status_of(pid);
        EXPECT(status == STATUS, "way %d: it ended with %d", i, status);
    }
    confine(EPERM);
    return host_wrong;
}
