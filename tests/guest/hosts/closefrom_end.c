/* SPDX-License-Identifier: MIT */
/* guest: 5. Nor at the end: the files of a program that closed everything are
 * what it wrote, after it has gone. */
#include "host.h"
#include <fcntl.h>
#include <sys/stat.h>

int
main(void)
{
    struct stat info;
    char name[32];
    pid_t pid = fork();

    if (pid == 0) {
        busy_ms(60);
        close_range(3, ~0u, 0);
        for (int i = 0; i < 40; i++) {
            snprintf(name, sizeof name, "last-%d", i);
            (void)!write(open(name, O_RDWR | O_CREAT, 0600), "own", 3);
        }
        busy_ms(30);
        exit(0);
    }
    EXPECT(status_of(pid) == 0, "the child ended otherwise");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "last-%d", i);
        EXPECT(stat(name, &info) == 0 && info.st_size == 3, "%s has %ld bytes",
               name, (long)info.st_size);
    }
    return host_wrong;
}
