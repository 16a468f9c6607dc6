/* SPDX-License-Identifier: MIT */
/* guest: 2. A child of a bare clone3() that has all signals set back to their
 * defaults makes threads that compute, and ends as it means to. */
#include "host.h"
#include <sys/syscall.h>

#define CLEAR_SIGHAND 0x100000000u /* CLONE_CLEAR_SIGHAND, Linux 5.5 */

static void *
compute(void *arg)
{
    busy_ms(100);
    return arg;
}

int
main(void)
{
    const uint64_t arguments[8] = {CLEAR_SIGHAND, 0, 0, 0, SIGCHLD};
    pthread_t busy = start_busy(100), thread;

    busy_ms(60);
    for (int i = 0; i < 3; i++) {
        long pid = syscall(SYS_clone3, arguments, sizeof arguments);

        if (pid == 0) {
            if (pthread_create(&thread, NULL, compute, NULL) == 0)
                pthread_join(thread, NULL);
            busy_ms(30);
            _exit(9);
        }
        if (pid > 0)
            EXPECT(status_of((pid_t)pid) == 9, "the child ended otherwise");
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
