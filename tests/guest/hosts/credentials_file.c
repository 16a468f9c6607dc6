/* SPDX-License-Identifier: MIT */
/* guest: 3. With a read-only working folder the program ends as it would.
 * needs: root */
#include "host.h"
#include <sys/stat.h>

int
main(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        mkdir("closed", 0500);
        EXPECT(chdir("closed") == 0, "chdir");
        busy_ms(40);
        exit(host_wrong);
    }
    EXPECT(status_of(pid) == 0, "the child ended otherwise");
    return host_wrong;
}
