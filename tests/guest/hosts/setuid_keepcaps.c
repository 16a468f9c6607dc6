/* SPDX-License-Identifier: MIT */
/* guest: 3. set*id of a program that keeps its capabilities and changes its
 * user again. needs: root */
#include "host.h"
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int
main(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    busy_ms(30);
    EXPECT(prctl(PR_SET_KEEPCAPS, 1) == 0, "prctl");
    EXPECT(setresuid(65534, 65534, 65534) == 0, "setresuid: %s",
           strerror(errno));
    EXPECT(syscall(SYS_capget, &head, data) == 0, "capget");
    data[0].effective = data[0].permitted;
    EXPECT(syscall(SYS_capset, &head, data) == 0, "capset");
    busy_ms(30);
    EXPECT(setresgid(65533, 65533, 65533) == 0, "setresgid: %s",
           strerror(errno));
    EXPECT(setresuid(65533, 65533, 65533) == 0, "setresuid: %s",
           strerror(errno));
    busy_ms(30);
    EXPECT(getuid() == 65533 && getgid() == 65533, "another user");
    return host_wrong;
}
