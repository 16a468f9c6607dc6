/* SPDX-License-Identifier: MIT */
/* guest: 3. A process that must not be looked at. */
#include "host.h"
#include <sys/prctl.h>

int
main(void)
{
    pthread_t busy;

    EXPECT(prctl(PR_SET_DUMPABLE, 0) == 0, "prctl");
    busy = start_busy(100);
    for (int i = 0; i < 40; i++) {
        const struct timespec t = {0, 2000000};

        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    }
    pthread_join(busy, NULL);
    EXPECT(prctl(PR_GET_DUMPABLE) == 0, "it is dumpable");
    return host_wrong;
}
