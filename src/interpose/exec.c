/* SPDX-License-Identifier: MIT */
/*
 * The exec family: no signal of ours may be on its way when the new image
 * starts. glibc's functions call each other by hidden names, so each is taken
 * over. Between vfork and exec this runs in a child that shares the parent's
 * memory; the session checks the pid.
 */
#include "collect/cpu/session.h"
#include "collect/runtime/uncancelled.h"
#include "interpose/take_over.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static bool
begin(void)
{
    CPPROF__UNCANCELLED;

    return cpprof__session_exec_begin();
}

static void
failed(bool holds)
{
    CPPROF__UNCANCELLED;

    cpprof__session_exec_failed(holds);
}

#define EXEC(call)                                                             \
    ({                                                                         \
        bool holds_ = begin();                                                 \
        int result_ = (call);                                                  \
                                                                               \
        failed(holds_);                                                        \
        result_;                                                               \
    })

#define TAKE_OVER_EXEC(name, parameters, arguments)                            \
    TAKE_OVER_EXEC_OR(name, parameters, arguments, NULL)

#define TAKE_OVER_EXEC_OR(name, parameters, arguments, otherwise)              \
    TAKE_OVER_OR(name, int, parameters, arguments, otherwise)                  \
                                                                               \
    static int name##_on parameters                                            \
    {                                                                          \
        return EXEC(cpprof__real(name) arguments);                             \
    }

TAKE_OVER_EXEC(execve,
               (const char *path, char *const argv[], char *const envp[]),
               (path, argv, envp))
TAKE_OVER_EXEC(execv, (const char *path, char *const argv[]), (path, argv))
TAKE_OVER_EXEC(execvp, (const char *file, char *const argv[]), (file, argv))
TAKE_OVER_EXEC(execvpe,
               (const char *file, char *const argv[], char *const envp[]),
               (file, argv, envp))
TAKE_OVER_EXEC(fexecve, (int fd, char *const argv[], char *const envp[]),
               (fd, argv, envp))

/* Came with glibc 2.34; before it a program that asks for the name finds ours.
 */
int
execveat(int fd, const char *path, char *const argv[], char *const envp[],
         int flags) __THROW;

static int
call_execveat(int fd, const char *path, char *const argv[], char *const envp[],
              int flags)
{
    return (int)syscall(SYS_execveat, fd, path, argv, envp, flags);
}

TAKE_OVER_EXEC_OR(execveat,
                  (int fd, const char *path, char *const argv[],
                   char *const envp[], int flags),
                  (fd, path, argv, envp, flags), call_execveat)

/* How many arguments follow the first, with the NULL that ends them. */
static size_t
count(va_list args)
{
    size_t n = 1;

    while (va_arg(args, char *))
        n++;
    return n;
}

/* Gather (first, ..., NULL) into an array on the caller's stack; `args` then
 * stands behind the NULL. POSIX wants first to be a string. */
#define GATHER(argv, args, first)                                              \
    va_list args;                                                              \
    size_t n_, i_;                                                             \
                                                                               \
    va_start(args, first);                                                     \
    n_ = count(args);                                                          \
    va_end(args);                                                              \
    char *argv[n_ + 1];                                                        \
    va_start(args, first);                                                     \
    argv[0] = (char *)(uintptr_t)first;                                        \
    for (i_ = 1; i_ <= n_; i_++)                                               \
    argv[i_] = va_arg(args, char *)

CPPROF_API int
execl(const char *path, const char *arg, ...)
{
    GATHER(argv, args, arg);

    va_end(args);
    return execv(path, argv);
}

CPPROF_API int
execlp(const char *file, const char *arg, ...)
{
    GATHER(argv, args, arg);

    va_end(args);
    return execvp(file, argv);
}

CPPROF_API int
execle(const char *path, const char *arg, ...)
{
    GATHER(argv, args, arg);
    char *const *envp = va_arg(args, char *const *);

    va_end(args);
    return execve(path, argv, envp);
}
