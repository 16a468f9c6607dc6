/* SPDX-License-Identifier: MIT */
/*
 * A program that the kernel tells of each fork, and that does not listen: what
 * makes a child waits for it for ever. No child is made.
 */
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES 65536

/* A descriptor that gets an event for each fork, or -1: it may not. */
static int
listen_for_forks(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_EVENT_FORK};
    struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    area.range.start = (uintptr_t)memory;
    area.range.len = BYTES;
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
        ioctl(fd, UFFDIO_REGISTER, &area))
        return -1;
    return fd;
}

int
main(void)
{
    struct cpprof_profile_options options = {.size = sizeof options};
    struct cpprof_error error = {.text = ""};
    struct pollfd fd = {listen_for_forks(), POLLIN, 0};
    enum cpprof_status status;

    if (fd.fd < 0)
        return check_skip_all("userfaultfd may not tell of forks here");
    cpprof_heap_set_rate(1);
    free(malloc(1000));
    alarm(20);
    status = cpprof_profile_write_to_path(cpprof_profile_lookup("heapleak"),
                                          "/dev/null", &options, &error);
    check_equal(status, CPPROF_UNSUPPORTED, "there is no search");
    check_has(error.text, "userfaultfd", "the error says why");
    check_equal(poll(&fd, 1, 0), 0, "the program is told of no fork");
    return check_done();
}
