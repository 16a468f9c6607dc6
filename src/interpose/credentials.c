/* SPDX-License-Identifier: MIT */
/*
 * Changes of credentials and of namespaces, which concern every thread: threads
 * of ours are not there meanwhile (collect/runtime/own_threads.h).
 *
 * libc has each thread make the same system call for setuid() and its like, and
 * aborts where one fails and another does not. A program with one thread may
 * have kept a capability that lets its call succeed, while a thread of ours,
 * made before, has lost it. And the kernel lets no process of several threads
 * enter a user namespace.
 *
 * A thread of the program that leaves the table of descriptors would leave it
 * to the thread of ours that holds it, with all that is open there.
 */
#include "collect/runtime/own_threads.h"
#include "http/listen.h"
#include "interpose/take_over.h"
#include "push/process.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/types.h>
#include <unistd.h>

static void
wake_up(void)
{
    cpprof__http_wake_up();
    cpprof__push_wake_up();
}

static int
resume_threads(bool are_paused, int result)
{
    int saved_errno = errno;

    if (are_paused)
        cpprof__own_threads_resume();
    errno = saved_errno;
    return result;
}

/* The name underneath, while no thread of ours is there. */
#define ALONE(name, parameters, arguments)                                     \
    TAKE_OVER(name, int, parameters, arguments)                                \
                                                                               \
    static int name##_on parameters                                            \
    {                                                                          \
        bool are_paused = cpprof__own_threads_pause(wake_up);                  \
                                                                               \
        return resume_threads(are_paused, cpprof__real(name) arguments);       \
    }

/* No header of libc declares it. */
int
capset(cap_user_header_t head, cap_user_data_t data);

ALONE(setuid, (uid_t uid), (uid))
ALONE(seteuid, (uid_t uid), (uid))
ALONE(setreuid, (uid_t real, uid_t effective), (real, effective))
ALONE(setresuid, (uid_t real, uid_t effective, uid_t saved),
      (real, effective, saved))
ALONE(setgid, (gid_t gid), (gid))
ALONE(setegid, (gid_t gid), (gid))
ALONE(setregid, (gid_t real, gid_t effective), (real, effective))
ALONE(setresgid, (gid_t real, gid_t effective, gid_t saved),
      (real, effective, saved))
ALONE(setgroups, (size_t n, const gid_t *gids), (n, gids))
ALONE(initgroups, (const char *user, gid_t gid), (user, gid))
ALONE(capset, (cap_user_header_t head, cap_user_data_t data), (head, data))
ALONE(unshare, (int flags), (flags))
ALONE(setns, (int fd, int kind), (fd, kind))

TAKE_OVER(close_range, int, (unsigned from, unsigned to, int flags),
          (from, to, flags))

static int
close_range_on(unsigned from, unsigned to, int flags)
{
    bool are_paused =
        flags & CLOSE_RANGE_UNSHARE && cpprof__own_threads_pause(wake_up);

    return resume_threads(are_paused,
                          cpprof__real(close_range)(from, to, flags));
}
