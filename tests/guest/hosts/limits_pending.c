/* SPDX-License-Identifier: MIT */
/* guest: 3. ulimit -i 0: no signal may be queued, so no timer be made. */
#include "host.h"
#include <sys/resource.h>

int
main(void)
{
    struct rlimit none = {0, 0};
    pthread_t busy;

    setrlimit(RLIMIT_SIGPENDING, &none);
    busy = start_busy(60);
    EXPECT(sigqueue(getpid(), SIGRTMIN, (union sigval){0}) < 0 &&
               errno == EAGAIN,
           "sigqueue: %s", strerror(errno));
    pthread_join(busy, NULL);
    return host_wrong;
}
