/* SPDX-License-Identifier: MIT */
/* guest: 4. sigtimedwait and sigwaitinfo on a full set see no signal of
 * ours. */
#include "host.h"

int
main(void)
{
    const struct timespec t = {0, 3000000};
    siginfo_t info;
    pthread_t busy;
    sigset_t all;
    int got;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    busy = start_busy(150);
    for (int i = 0; i < 50; i++) {
        got = sigtimedwait(&all, &info, &t);
        EXPECT(got < 0 && errno == EAGAIN, "sigtimedwait: %d, %s", got,
               strerror(errno));
    }
    busy_ms(60);
    kill(getpid(), SIGTERM);
    got = sigwaitinfo(&all, &info);
    EXPECT(got == SIGTERM && info.si_pid == getpid(), "sigwaitinfo: %d", got);
    pthread_join(busy, NULL);
    return host_wrong;
}
