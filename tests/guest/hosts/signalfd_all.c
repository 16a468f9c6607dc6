/* SPDX-License-Identifier: MIT */
/* guest: 4. A signalfd of all signals has none of ours. */
#include "host.h"
#include <poll.h>
#include <sys/signalfd.h>

int
main(void)
{
    struct signalfd_siginfo info;
    struct pollfd one = {.events = POLLIN};
    pthread_t busy;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    one.fd = signalfd(-1, &all, 0);
    busy = start_busy(150);
    busy_ms(100);
    EXPECT(poll(&one, 1, 60) == 0, "a signal is pending");
    kill(getpid(), SIGHUP);
    EXPECT(read(one.fd, &info, sizeof info) == sizeof info &&
               info.ssi_signo == SIGHUP,
           "read signal %u", info.ssi_signo);
    pthread_join(busy, NULL);
    return host_wrong;
}
