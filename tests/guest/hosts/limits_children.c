/* SPDX-License-Identifier: MIT */
/* guest: 2. ulimit -u: where a child is the last process that there may be, and
 * has no room for a thread of ours, it ends as soon as without us. needs: root
 */
#include "host.h"
#include <sys/resource.h>

#define N_CHILDREN 20
#define MOST_MS    20 /* alone it is 0.2 */

int
main(void)
{
    struct rlimit limit = {2, 2};
    uid_t uid = 20000 + (uid_t)getpid() % 40000; /* nobody else's */
    uint64_t least_ns = UINT64_MAX;
    int i;

    if (setgid(uid) || setuid(uid))
        return 99;
    sleep_ms(20); /* what we had started has ended */
    setrlimit(RLIMIT_NPROC, &limit);
    for (i = 0; i < N_CHILDREN; i++) {
        uint64_t from_ns = host_ns(CLOCK_MONOTONIC), ns;
        pid_t pid = fork();

        EXPECT(pid >= 0, "fork %d: %s", i, strerror(errno));
        if (pid == 0)
            _exit(3);
        EXPECT(status_of(pid) == 3, "child %d ended otherwise", i);
        ns = host_ns(CLOCK_MONOTONIC) - from_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    EXPECT(least_ns < MOST_MS * 1000000ull, "each child takes %d ms",
           (int)(least_ns / 1000000));
    return host_wrong;
}
