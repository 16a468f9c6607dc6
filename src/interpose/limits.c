/* SPDX-License-Identifier: MIT */
/*
 * A limit on queued signals that the program lowers: the kernel would send
 * SIGIO in the stead of a perf event's signal for which there is no room, and
 * that ends a program without a handler. So threads get timers before.
 *
 * Source: fcntl(2), F_SETSIG.
 */
/* Its header gives the one name the other's. */
#undef _FILE_OFFSET_BITS

#include "collect/threads/threads.h"
#include "interpose/take_over.h"

#include <errno.h>
#include <sys/resource.h>

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

static void
about_to_set(__rlimit_resource_t resource)
{
    int saved_errno = errno;

    if (resource == RLIMIT_SIGPENDING)
        cpprof__threads_leave_perf();
    errno = saved_errno;
}

#define SETS_LIMIT(name, type)                                                 \
    TAKE_OVER(name, int,                                                       \
              (__rlimit_resource_t resource, const struct type *limit),        \
              (resource, limit))                                               \
                                                                               \
    static int name##_on(__rlimit_resource_t resource,                         \
                         const struct type *limit)                             \
    {                                                                          \
        about_to_set(resource);                                                \
        return cpprof__real(name)(resource, limit);                            \
    }

#define SETS_LIMIT_OF(name, type)                                              \
    TAKE_OVER(name, int,                                                       \
              (pid_t pid, enum __rlimit_resource resource,                     \
               const struct type *limit, struct type *old),                    \
              (pid, resource, limit, old))                                     \
                                                                               \
    static int name##_on(pid_t pid, enum __rlimit_resource resource,           \
                         const struct type *limit, struct type *old)           \
    {                                                                          \
        if (limit)                                                             \
            about_to_set(resource);                                            \
        return cpprof__real(name)(pid, resource, limit, old);                  \
    }

SETS_LIMIT(setrlimit, rlimit)
SETS_LIMIT(setrlimit64, rlimit64)
SETS_LIMIT_OF(prlimit, rlimit)
SETS_LIMIT_OF(prlimit64, rlimit64)

#endif
