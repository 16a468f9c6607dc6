/* SPDX-License-Identifier: MIT */
/* guest: 5. Never a byte into a file that is not ours: a program that closes
 * all descriptors and opens files of its own. */
#include "host.h"
#include <fcntl.h>
#include <sys/stat.h>

int
main(void)
{
    struct stat info;
    char name[32];

    busy_ms(40);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    close_range(3, ~0u, 0);
    for (int i = 0; i < 40; i++) {
        int fd;

        snprintf(name, sizeof name, "own-%d", i);
        fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        EXPECT(fd >= 0 && write(fd, "own", 3) == 3, "write: %s",
               strerror(errno));
    }
    busy_ms(60);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "own-%d", i);
        EXPECT(stat(name, &info) == 0 && info.st_size == 3, "%s has %ld bytes",
               name, (long)info.st_size);
    }
    return host_wrong;
}
