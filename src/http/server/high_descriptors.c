/* SPDX-License-Identifier: MIT */
#include "http/server/high_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define HIGH 4096

/* The number, or 1/share of the limit on descriptors where that is lower. */
static int
bounded(int number, int share)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit) &&
        limit.rlim_cur < (rlim_t)number * (rlim_t)share)
        return (int)(limit.rlim_cur / (rlim_t)share);
    return number;
}

int
cpprof__descriptor_high(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, bounded(HIGH, 2)), why = errno;

    if (high < 0 && fd > STDERR_FILENO)
        return fd;
    close(fd);
    errno = why;
    return high;
}

void
cpprof__descriptors_hold(struct cpprof__descriptors_held *held)
{
    int low = bounded(CPPROF__DESCRIPTORS_LOW, 4);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    held->n = 0;
    while (fd >= 0 && fd < low) {
        held->fds[held->n++] = fd;
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    if (fd >= 0)
        close(fd);
}

void
cpprof__descriptors_release(struct cpprof__descriptors_held *held)
{
    while (held->n)
        close(held->fds[--held->n]);
}
