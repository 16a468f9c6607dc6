/* SPDX-License-Identifier: MIT */
/* guest: 5. The lowest free number is the program's a second later, too, when
 * profiles of the first second are made. */
#include "host.h"
#include <fcntl.h>

int
main(void)
{
    unsigned n_taken = 0;

    sleep_ms(900);
    close(0);
    for (int turn = 0; turn < 400; turn++)
        for (int i = 0; i < 5000; i++)
            n_taken += fcntl(0, F_GETFD) >= 0;
    EXPECT(!n_taken, "others had number 0, seen %u times", n_taken);
    return host_wrong;
}
