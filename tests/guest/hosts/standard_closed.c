/* SPDX-License-Identifier: MIT */
/* guest: 5. Started without standard descriptors, it does not find ours in
 * their place. */
#include "host.h"
#include <fcntl.h>

int
main(int argc, char **argv)
{
    char *words[] = {argv[0], "again", NULL};
    pid_t pid;

    if (argc == 1) {
        pid = fork();
        if (pid == 0) {
            close(0);
            close(2);
            execv("/proc/self/exe", words);
            _exit(99);
        }
        EXPECT(status_of(pid) == 0, "it did not run");
        return host_wrong;
    }
    busy_ms(40);
    EXPECT(fcntl(0, F_GETFD) < 0, "0 is open");
    EXPECT(fcntl(2, F_GETFD) < 0, "2 is open");
    EXPECT(open("/dev/null", O_RDONLY) == 0, "0 was not free");
    return host_wrong;
}
