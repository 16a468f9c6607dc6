/* SPDX-License-Identifier: MIT */
/* guest: 2. Children that exec, by fork and by vfork. */
#include "host.h"

int
main(void)
{
    for (int i = 0; i < 30; i++) {
        pid_t pid = i % 2 ? fork() : vfork();

        if (pid == 0) {
            execl("/bin/sh", "sh", "-c", "exit $0", i % 3 ? "5" : "6",
                  (char *)NULL);
            _exit(127);
        }
        EXPECT(status_of(pid) == (i % 3 ? 5 : 6), "child %d", i);
    }
    return host_wrong;
}
