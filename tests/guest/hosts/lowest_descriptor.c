/* SPDX-License-Identifier: MIT */
/* guest: 5. The program's table of descriptors is the program's: close(0),
 * open() gives 0, and numbers do not shift. */
#include "host.h"
#include <fcntl.h>

int
main(void)
{
    pthread_t busy = start_busy(150);
    int first = open("/dev/null", O_RDONLY);

    EXPECT(first == 3, "the first one is %d", first);
    for (int i = 0; i < 3000; i++) {
        int got;

        close(0);
        got = open("/dev/null", O_RDONLY);
        EXPECT(got == 0, "it is %d", got);
        got = dup(0);
        EXPECT(got == 4, "dup gave %d", got);
        close(got);
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
