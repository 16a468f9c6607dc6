/* SPDX-License-Identifier: MIT */
/* guest: 5. A program that puts its standard output away for a moment has it
 * when it is back: nobody closes that number. */
#include "host.h"
#include <fcntl.h>
#include <poll.h>

int
main(void)
{
    pthread_t busy = start_busy(200);
    int kept = dup(1), n_lost = 0, n_taken = 0;

    poll(NULL, 0, 40); /* who starts late has begun */
    for (int i = 0; i < 1500; i++) {
        close(1);
        if (i % 8 == 0)
            poll(NULL, 0, 1);
        n_taken += fcntl(1, F_GETFD) >= 0;
        dup2(kept, 1);
        if (i % 8 == 0)
            poll(NULL, 0, 0);
        n_lost += fcntl(1, F_GETFD) < 0;
    }
    EXPECT(!n_lost, "it was closed %d times", n_lost);
    EXPECT(!n_taken, "others had its number %d times", n_taken);
    pthread_join(busy, NULL);
    return host_wrong;
}
