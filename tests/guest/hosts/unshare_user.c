/* SPDX-License-Identifier: MIT */
/* guest: 3. What only a process of one thread may do: a user namespace of its
 * own. */
#include "host.h"
#include <sched.h>

int
main(void)
{
    busy_ms(30);
    EXPECT(unshare(CLONE_NEWUSER) == 0, "unshare: %s", strerror(errno));
    return host_wrong;
}
