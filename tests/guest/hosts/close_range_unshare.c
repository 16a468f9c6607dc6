/* SPDX-License-Identifier: MIT */
/* guest: 5. A pipe ends when the program closes it, after it has left its table
 * of descriptors by unshare() or close_range(). */
#include "host.h"
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>

static void
leave(bool by_range)
{
    if (by_range)
        close_range(900, 1000, CLOSE_RANGE_UNSHARE);
    else
        unshare(CLONE_FILES);
}

int
main(void)
{
    int by_range;

    for (by_range = 0; by_range < 2; by_range++) {
        int ends[2];
        struct pollfd end = {.events = POLLIN};

        EXPECT(pipe(ends) == 0, "pipe: %s", strerror(errno));
        busy_ms(100);
        leave(by_range);
        close(ends[1]);
        end.fd = ends[0];
        EXPECT(poll(&end, 1, 2000) == 1, "no end of the pipe, %d", by_range);
        close(ends[0]);
    }
    return host_wrong;
}
