/* SPDX-License-Identifier: MIT */
/* guest: 3. A handler calls exit() while the program changes its groups, as
 * that of a server's worker does when SIGTERM comes early: it ends at once. */
#include "host.h"
#include <grp.h>
#include <nss.h>
#include <sys/time.h>

static void
on_alarm(int signo)
{
    (void)signo;
    exit(3);
}

static void
child(unsigned ms)
{
    const struct itimerval soon = {{0, 0}, {0, ms * 1000}};
    uint64_t end = host_ns(CLOCK_MONOTONIC) + 5000000000u;

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (host_ns(CLOCK_MONOTONIC) < end)
        initgroups("nobody", 65534); /* which root may */
    exit(4);
}

int
main(void)
{
    uint64_t begin = host_ns(CLOCK_MONOTONIC);
    unsigned ms;
    pid_t pid;
    int status;

    /* Asked are no files: exit() within fopen() may wait for ever for libc's
     * own lock of all streams, with us or without. */
    __nss_configure_lookup("group", "db");
    initgroups("nobody", 65534); /* libc loads what it needs to ask */
    for (ms = 10; ms < 40; ms += 3) {
        pid = fork();
        if (!pid)
            child(ms);
        status = status_of(pid);
        EXPECT(status == 3, "after %u ms: %d", ms, status);
    }
    EXPECT(host_ns(CLOCK_MONOTONIC) - begin < 20000000000u, "it took too long");
    return host_wrong;
}
