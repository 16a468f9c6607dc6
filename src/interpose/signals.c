/* SPDX-License-Identifier: MIT */
/*
 * What a program does to signals that concerns ours.
 *
 * A limit on queued signals that it lowers: the kernel would send SIGIO in the
 * stead of a perf event's signal for which there is no room, and that ends a
 * program without a handler. So threads get timers before. An alternate stack
 * on which it makes coroutines: threads/action.h. Strict seccomp, under which a
 * thread is killed for any system call but read, write, exit and sigreturn: our
 * signal is blocked there, for good, hooks see an exempt thread, and its exit()
 * writes nothing. Syscall user dispatch, which leads all of a thread's calls to
 * the program's handler of SIGSYS: no signal is sent from then on. A
 * processor's counter that may not be read any more (PR_SET_TSC): clocks are
 * read by system calls then.
 *
 * Source: fcntl(2), F_SETSIG; sigaltstack(2); seccomp(2); prctl(2).
 */
/* Its header gives the one name the other's. */
#undef _FILE_OFFSET_BITS

#include "arch/clock.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/process/environment.h"
#include "collect/signal/heap/exempt.h"
#include "collect/signal/sample/alternate.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/reserve.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

/* Also where nobody can tell. A pointer that leads nowhere is the kernel's to
 * refuse: no way to change a mask is called ~0, but it looks at what the mask
 * is to be changed by first. */
static bool
is_lower(const rlim64_t *limit)
{
    struct rlimit64 now;

    if (syscall(SYS_rt_sigprocmask, ~0, limit, NULL, sizeof *limit) < 0 &&
        errno != EINVAL)
        return errno != EFAULT;
    return syscall(SYS_prlimit64, 0, RLIMIT_SIGPENDING, NULL, &now) < 0 ||
           *limit < now.rlim_cur;
}

/* A limit that is not lowered leaves perf events the room that they have. */
static void
about_to_set(__rlimit_resource_t resource, const void *limit)
{
    int saved_errno = errno;

    if (resource == RLIMIT_SIGPENDING && is_lower(limit))
        cpprof__threads_leave_perf();
    errno = saved_errno;
}

static int
has_set(__rlimit_resource_t resource, int result)
{
    if (resource == RLIMIT_AS || resource == RLIMIT_DATA ||
        resource == RLIMIT_FSIZE)
        cpprof__limits_read();
    return result;
}

#define SETS_LIMIT(name, type)                                                 \
    TAKE_OVER(name, int,                                                       \
              (__rlimit_resource_t resource, const struct type *limit),        \
              (resource, limit))                                               \
                                                                               \
    static int name##_on(__rlimit_resource_t resource,                         \
                         const struct type *limit)                             \
    {                                                                          \
        NEEDS_STORAGE(name, (resource, limit));                                \
        about_to_set(resource, limit);                                         \
        return has_set(resource, cpprof__real(name)(resource, limit));         \
    }

#define SETS_LIMIT_OF(name, type)                                              \
    TAKE_OVER(name, int,                                                       \
              (pid_t pid, __rlimit_resource_t resource,                        \
               const struct type *limit, struct type *old),                    \
              (pid, resource, limit, old))                                     \
                                                                               \
    static int name##_on(pid_t pid, __rlimit_resource_t resource,              \
                         const struct type *limit, struct type *old)           \
    {                                                                          \
        NEEDS_STORAGE(name, (pid, resource, limit, old));                      \
        if (!limit || (pid && pid != getpid()))                                \
            return cpprof__real(name)(pid, resource, limit, old);              \
        about_to_set(resource, limit);                                         \
        return has_set(resource,                                               \
                       cpprof__real(name)(pid, resource, limit, old));         \
    }

SETS_LIMIT(setrlimit, rlimit)
SETS_LIMIT(setrlimit64, rlimit64)
SETS_LIMIT_OF(prlimit, rlimit)
SETS_LIMIT_OF(prlimit64, rlimit64)

#endif

TAKE_OVER(sigaltstack, int, (const stack_t *stack, stack_t *old), (stack, old))

/* A program need not keep the pointer that the kernel has; heapleak finds it
 * here, as in any memory of the program. */
static __thread void *volatile alternate_stack;

static int
sigaltstack_on(const stack_t *stack, stack_t *old)
{
    int saved_errno, result;

    NEEDS_STORAGE(sigaltstack, (stack, old));
    saved_errno = errno;
    if (stack)
        cpprof__alternate_before(stack->ss_flags & SS_DISABLE ? NULL
                                                              : stack->ss_sp,
                                 alternate_stack);
    errno = saved_errno;
    result = cpprof__real(sigaltstack)(stack, old);
    if (stack && !result)
        alternate_stack = stack->ss_flags & SS_DISABLE ? NULL : stack->ss_sp;
    return result;
}

/* ---- threads whose system calls are refused or led elsewhere --------------
 */

/* In 2021's kernel, and not in the headers of Debian 11. */
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#endif

/* libc's own wrapper hands on four words, however many there are. */
#define WORDS_OF(option)                                                       \
    unsigned long words[4];                                                    \
    va_list list;                                                              \
                                                                               \
    va_start(list, option);                                                    \
    for (unsigned i = 0; i < 4; i++)                                           \
        words[i] = va_arg(list, unsigned long);                                \
    va_end(list)
#define WORDS words[0], words[1], words[2], words[3]

static __thread bool is_strict;
static __thread bool is_dispatched;

bool
cpprof__in_strict_seccomp(void)
{
    return is_strict;
}

HOOK(prctl, NULL)

CPPROF_API int
prctl(int option, ...)
{
    WORDS_OF(option);

    return ENTRY(prctl)(option, WORDS);
}

/* libc's calls leave signal 33 as it is. */
static void
change_own_signal(int how)
{
    uint64_t signals = (uint64_t)1 << (CPPROF__SIGNAL - 1);

    syscall(SYS_rt_sigprocmask, how, &signals, NULL, sizeof signals);
}

/* What the program's handler of SIGSYS would answer is a call of ours, the
 * return from a tick's handler among them: no thread gets any more ticks, and
 * hooks leave this one alone as long. */
static int
set_dispatch(const unsigned long *words)
{
    bool on = words[0] != PR_SYS_DISPATCH_OFF;
    int saved_errno = errno, result;

    if (on)
        cpprof__threads_leave_signals();
    errno = saved_errno;
    result = cpprof__real(prctl)(PR_SET_SYSCALL_USER_DISPATCH, WORDS);
    if (!result && on != is_dispatched) {
        is_dispatched = on;
        cpprof__hook_self.exempt += on ? 1u : -1u;
    }
    return result;
}

/* ---- a counter that must not be read ------------------------------------ */

/* That of threads, and so of those that it makes; ours may read it. For good:
 * threads that it has made keep it. */
static void
forbid_counter(void)
{
    store_release(&cpprof__counter_is_forbidden, true);
    store_release(&cpprof__vdso_clock, &cpprof__kernels_clock);
}

CPPROF__FIRST_STEP void
cpprof__look_for_counter(void)
{
    int may = PR_TSC_ENABLE;

    if (!cpprof__syscall(SYS_prctl, PR_GET_TSC, (long)&may, 0, 0, 0, 0) &&
        may == PR_TSC_SIGSEGV)
        forbid_counter();
}

/* libseccomp sets it by syscall(), which we do not see, but asks by prctl()
 * before that for no new privileges, without which only root may have one. */
static bool
comes_filter(int option, unsigned long word)
{
    return option == PR_SET_NO_NEW_PRIVS ||
           (option == PR_SET_SECCOMP && word == SECCOMP_MODE_FILTER);
}

static int
prctl_on(int option, ...)
{
    int saved_errno, result;
    WORDS_OF(option);

    NEEDS_STORAGE(prctl, (option, WORDS));
    if (option == PR_SET_SYSCALL_USER_DISPATCH)
        return set_dispatch(words);
    if (option == PR_SET_TSC && words[0] == PR_TSC_SIGSEGV)
        forbid_counter();
    if (comes_filter(option, words[0]))
        cpprof__environment_before_filter();
    saved_errno = errno;
    if (option != PR_SET_SECCOMP || words[0] != SECCOMP_MODE_STRICT)
        return cpprof__real(prctl)(option, WORDS);
    change_own_signal(SIG_BLOCK);
    errno = saved_errno;
    result = cpprof__real(prctl)(option, WORDS);
    saved_errno = errno;
    if (result) {
        change_own_signal(SIG_UNBLOCK);
    } else {
        cpprof__hook_self.exempt++;
        is_strict = true;
    }
    errno = saved_errno;
    return result;
}
