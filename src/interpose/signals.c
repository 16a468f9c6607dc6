/* SPDX-License-Identifier: MIT */
/*
 * What a program does to signals that concerns ours.
 *
 * A limit on queued signals that it lowers: the kernel would send SIGIO in the
 * stead of a perf event's signal for which there is no room, and that ends a
 * program without a handler. So threads get timers before. An alternate stack
 * on which it makes coroutines: threads/action.h.
 *
 * Source: fcntl(2), F_SETSIG; sigaltstack(2).
 */
/* Its header gives the one name the other's. */
#undef _FILE_OFFSET_BITS

#include "collect/threads/action.h"
#include "collect/threads/threads.h"
#include "interpose/take_over.h"

#include <errno.h>
#include <signal.h>
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

TAKE_OVER(sigaltstack, int, (const stack_t *stack, stack_t *old), (stack, old))

static int
sigaltstack_on(const stack_t *stack, stack_t *old)
{
    int saved_errno = errno;

    if (stack && !(stack->ss_flags & SS_DISABLE))
        cpprof__action_before_alternate_stack();
    errno = saved_errno;
    return cpprof__real(sigaltstack)(stack, old);
}
