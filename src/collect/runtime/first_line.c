/* SPDX-License-Identifier: MIT */
#include "collect/runtime/first_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* 0 or an errno. */
static int
read_file(const char *path, char *bytes, size_t n, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), failed;
    ssize_t got;

    if (fd < 0)
        return errno;
    got = read(fd, bytes, n);
    failed = got < 0 ? errno : 0;
    close(fd);
    *length = got < 0 ? 0 : (size_t)got;
    return failed;
}

static bool
has_control(const char *line)
{
    while (*line && (unsigned char)*line >= ' ' && *line != 0x7f)
        line++;
    return *line;
}

int
cpprof__first_line(const char *path, char *line, size_t n)
{
    size_t length = 0;
    int failed = read_file(path, line, n, &length);

    if (failed)
        return failed;
    if (length >= n)
        return EINVAL;
    line[length] = 0;
    line[strcspn(line, "\r\n")] = 0;
    return !*line || has_control(line) ? EINVAL : 0;
}
