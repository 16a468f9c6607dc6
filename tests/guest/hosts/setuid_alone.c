/* SPDX-License-Identifier: MIT */
/* guest: 3. set*id works in a program of one thread. needs: root */
#include "host.h"
#include <grp.h>

int
main(void)
{
    busy_ms(30);
    EXPECT(setgroups(0, NULL) == 0, "setgroups: %s", strerror(errno));
    EXPECT(setresgid(65534, 65534, 65534) == 0, "setresgid: %s",
           strerror(errno));
    EXPECT(setresuid(65534, 65534, 65534) == 0, "setresuid: %s",
           strerror(errno));
    busy_ms(60);
    EXPECT(getuid() == 65534 && geteuid() == 65534, "another user");
    EXPECT(setuid(0) != 0 && errno == EPERM, "it is root again");
    return host_wrong;
}
