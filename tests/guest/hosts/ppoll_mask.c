/* SPDX-License-Identifier: MIT */
/* guest: 4. ppoll and pselect that open the mask are not cut short. */
#include "host.h"
#include <poll.h>
#include <sys/select.h>

int
main(void)
{
    const struct timespec t = {0, 3000000};
    sigset_t all, none;
    pthread_t busy;

    sigfillset(&all);
    sigemptyset(&none);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    busy = start_busy(150);
    for (int i = 0; i < 40; i++) {
        busy_ms(1);
        EXPECT(ppoll(NULL, 0, &t, &none) == 0, "ppoll: %s", strerror(errno));
        EXPECT(pselect(0, NULL, NULL, NULL, &t, &none) == 0, "pselect: %s",
               strerror(errno));
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
