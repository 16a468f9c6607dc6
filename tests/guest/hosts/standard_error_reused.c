/* SPDX-License-Identifier: MIT */
/* guest: 5. The file that has become descriptor 2 of a program which closed
 * its standard error has what the program wrote, though profiles cannot be
 * written and somebody should be told. Nor does
 * it matter that it has the inode of a standard error that was removed. */
#include "host.h"
#include <fcntl.h>
#include <sys/stat.h>

#define DATA "the program's own"

static int
own_file(const char *path)
{
    int fd;

    close(STDERR_FILENO);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd == STDERR_FILENO, "the file is %d", fd);
    EXPECT(write(fd, DATA, sizeof DATA - 1) == sizeof DATA - 1, "not written");
    return fd;
}

static void
live(const char *path, bool inode_again)
{
    if (inode_again) { /* the next file may get that of the one that goes */
        close(STDERR_FILENO);
        unlink("../said");
    }
    own_file(path);
    sleep_ms(1300); /* what ends sooner leaves no profile */
    busy_ms(60);
    EXPECT(rename("../gone", inode_again ? "../b" : "../a") == 0, "it stays");
    exit(host_wrong);
}

static void
check(const char *path)
{
    char bytes[4096];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof bytes);

    EXPECT(n == sizeof DATA - 1 && memcmp(bytes, DATA, sizeof DATA - 1) == 0,
           "%s has %zd bytes: %.*s", path, n, (int)(n < 0 ? 0 : n), bytes);
    close(fd);
}

int
main(int argc, char **argv)
{
    static const char *const ways[] = {"../data", "../inode"};
    unsigned i;

    if (argc > 1)
        live(argv[1], strcmp(argv[1], "../inode") == 0);
    for (i = 0; i < 2; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            int said = open("said", O_WRONLY | O_CREAT | O_TRUNC, 0600);

            dup2(said, STDERR_FILENO);
            close(said);
            if (mkdir("gone", 0700) || chdir("gone"))
                _exit(98);
            execl("/proc/self/exe", argv[0], ways[i], NULL);
            _exit(99);
        }
        EXPECT(status_of(pid) == 0, "%s ended otherwise", ways[i]);
        check(ways[i] + 3);
    }
    return host_wrong;
}
