/* SPDX-License-Identifier: MIT */
/* guest: 3. A child locks itself in, as sshd's does before it reads what a
 * stranger sends: another user, no further process, thread or byte in a file,
 * and then a filter that kills. It works on, and ends as it means to. */
#include "filter.h"
#include <sys/resource.h>

static void
confine(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        ALLOW_WORK,
        FILTER_END(SECCOMP_RET_KILL_PROCESS),
    };

    FILTER_SET(lines, 0);
}

static void
work(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int i;

    for (i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        free(malloc(200000));
        pthread_mutex_unlock(&lock);
        busy_ms(1);
        sleep_ms(1);
    }
}

static void
child(unsigned ms)
{
    const struct rlimit none = {0, 0};

    alarm(10); /* and not after half a minute */
    sleep_ms(ms);
    if (getuid() == 0 &&
        (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        exit(4);
    if (setrlimit(RLIMIT_FSIZE, &none) || setrlimit(RLIMIT_NPROC, &none))
        exit(5);
    confine();
    work();
    exit(host_wrong ? 6 : 3);
}

int
main(void)
{
    unsigned ms;
    pid_t pid;
    int status;

    alarm(60);
    for (ms = 0; ms < 16; ms += 3) {
        free(malloc(300000));
        pid = fork();
        if (!pid)
            child(ms);
        status = status_of(pid);
        EXPECT(status == 3, "after %u ms: %d", ms, status);
    }
    return host_wrong;
}
