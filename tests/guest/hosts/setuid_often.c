/* SPDX-License-Identifier: MIT */
/* guest: 3. set*id of a program that changes its user for each request, some
 * hundred times a second, and then for good. needs: root */
#include "host.h"
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define USER 65534

int
main(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {.effective = 1u << CAP_SETUID, .permitted = 1u << CAP_SETUID}};

    busy_ms(30);
    for (int i = 0; i < 300; i++) {
        EXPECT(seteuid(USER) == 0, "seteuid: %s", strerror(errno));
        EXPECT(seteuid(0) == 0, "seteuid back: %s", strerror(errno));
    }
    EXPECT(prctl(PR_SET_KEEPCAPS, 1) == 0, "prctl");
    EXPECT(setresuid(USER, USER, USER) == 0, "setresuid: %s", strerror(errno));
    EXPECT(syscall(SYS_capset, &head, data) == 0, "capset");
    EXPECT(setresuid(1234, 1234, 1234) == 0, "setresuid again: %s",
           strerror(errno));
    if (unshare(CLONE_NEWUSER))
        EXPECT(errno == EPERM || errno == ENOSPC, "unshare: %s",
               strerror(errno));
    return host_wrong;
}
