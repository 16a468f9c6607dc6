/* SPDX-License-Identifier: MIT */
/*
 * Ends that run no destructors.
 *
 * _exit() may be called by a handler that interrupted malloc, and then the
 * thread that is made to write the profiles may wait for the interrupted one;
 * a task that uses no more than the kernel sees to it that the process ends.
 */
#include "arch/atomic.h"
#include "arch/regs.h"
#include "collect/process/environment.h"
#include "http/listen.h"
#include "interpose/take_over.h"
#include "push/process.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* More than all that may take its time then. */
#define SECONDS_MAX 21

/* No thread to libc: it has the thread-local storage of its maker, and must
 * not touch it. */
#define GUARD_FLAGS                                                            \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |        \
     CLONE_SYSVSEM)

static _Alignas(16) char guard_stack[8192];
static bool guard_taken;

__attribute__((no_sanitize("address", "thread", "undefined"))) static int
guard(void *status)
{
    const struct timespec most = {SECONDS_MAX, 0};

    cpprof__syscall(SYS_nanosleep, (long)&most, 0, 0, 0, 0, 0);
    cpprof__syscall(SYS_exit_group, (long)status, 0, 0, 0, 0, 0);
    return 0;
}

static void
start_guard(int status)
{
    sigset_t all, saved;

    if (swap_acq_rel(&guard_taken, true))
        return;
    sigfillset(&all);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved, 8);
    clone(guard, guard_stack + sizeof guard_stack, GUARD_FLAGS,
          (void *)(long)status);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, 8);
}

HOOK(_exit, NULL)

CPPROF_API void
_exit(int status)
{
    ENTRY(_exit)(status);
    __builtin_unreachable();
}

static void
_exit_first(int status)
{
    FIRST(_exit)(status);
    __builtin_unreachable();
}

static void
_exit_on(int status)
{
    cpprof__http_end();
    cpprof__push_end();
    if (cpprof__environment_end_writes())
        start_guard(status);
    cpprof__environment_stop(true);
    for (;;)
        syscall(SYS_exit_group, status);
}

HOOK(_Exit, NULL)

CPPROF_API void
_Exit(int status)
{
    ENTRY(_Exit)(status);
    __builtin_unreachable();
}

static void
_Exit_first(int status)
{
    FIRST(_Exit)(status);
    __builtin_unreachable();
}

static void
_Exit_on(int status)
{
    _exit_on(status);
}
