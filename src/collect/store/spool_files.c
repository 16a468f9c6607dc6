/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of the files of a directory. Who made them may have fewer
 * rights than who reads, and may change them at this moment: they are links
 * or pipes, as long as nobody has looked, and may become shorter. So they are
 * never mapped, which would be a SIGBUS in the recorder, but copied, and the
 * copy is what is checked.
 */
#include "collect/store/spool.h"

#include "arch/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No link is followed, and no pipe waited for. */
#define OPEN (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* Not what somebody has mounted there, in a namespace of his. */
static int
open_file(const char *path)
{
    struct open_how how = {.flags = OPEN,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
    const char *name = strrchr(path, '/');
    char directory[CPPROF__SPOOL_PATH_BYTES];
    int folder, fd;

    if (!name || name - path >= (long)sizeof directory)
        return -1;
    memcpy(directory, path, (size_t)(name - path));
    directory[name - path] = 0;
    folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    fd = (int)syscall(SYS_openat2, folder, name + 1, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(folder, name + 1, OPEN);
    close(folder);
    return fd;
}

int
cpprof__spool_open(const char *path)
{
    int fd = open_file(path);
    struct stat st;

    if (fd >= 0 &&
        (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink > 1)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- copying ---------------------------------------------------------- */

/* What cannot be read stays zero. */
static void
read_range(int fd, char *base, off_t at, off_t end)
{
    while (at < end) {
        ssize_t n = pread(fd, base + at, (size_t)(end - at), at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        at += n;
    }
}

void
cpprof__spool_copy(int fd, void *to, size_t n_bytes)
{
    off_t at = 0, end, n = (off_t)n_bytes;

    while (at < n) {
        at = lseek(fd, at, SEEK_DATA);
        if (at < 0 || at >= n)
            return;
        end = lseek(fd, at, SEEK_HOLE);
        if (end <= at || end > n)
            end = n;
        read_range(fd, to, at, end);
        at = end;
    }
}
