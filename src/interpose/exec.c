/* SPDX-License-Identifier: MIT */
/*
 * The exec family: no signal of ours may be on its way when the new image
 * starts. glibc's functions call each other by hidden names, so each is taken
 * over. Between vfork and exec this runs in a child that shares the parent's
 * memory; the session checks the pid.
 */
#include "collect/cpu/session.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"
#include <cpprof/status.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

extern char **environ;

static void
begin(void)
{
    CPPROF__UNCANCELLED;

    cpprof__session_exec_begin();
}

static void
failed(void)
{
    CPPROF__UNCANCELLED;

    cpprof__session_exec_failed();
}

#define EXEC(call)                                                             \
    ({                                                                         \
        int result_;                                                           \
                                                                               \
        begin();                                                               \
        result_ = (call);                                                      \
        failed();                                                              \
        result_;                                                               \
    })

typedef int
exec_fn(const char *, char *const[]);
typedef int
exec_env_fn(const char *, char *const[], char *const[]);
typedef int
fexec_fn(int, char *const[], char *const[]);
typedef int
execat_fn(int, const char *, char *const[], char *const[], int);

CPPROF_API int
execve(const char *path, char *const argv[], char *const envp[])
{
    return EXEC(CPPROF__REAL(exec_env_fn *, execve)(path, argv, envp));
}

CPPROF_API int
execv(const char *path, char *const argv[])
{
    return EXEC(CPPROF__REAL(exec_fn *, execv)(path, argv));
}

CPPROF_API int
execvp(const char *file, char *const argv[])
{
    return EXEC(CPPROF__REAL(exec_fn *, execvp)(file, argv));
}

CPPROF_API int
execvpe(const char *file, char *const argv[], char *const envp[])
{
    return EXEC(CPPROF__REAL(exec_env_fn *, execvpe)(file, argv, envp));
}

CPPROF_API int
fexecve(int fd, char *const argv[], char *const envp[])
{
    return EXEC(CPPROF__REAL(fexec_fn *, fexecve)(fd, argv, envp));
}

CPPROF_API int
execveat(int fd, const char *path, char *const argv[], char *const envp[],
         int flags)
{
    return EXEC(
        CPPROF__REAL(execat_fn *, execveat)(fd, path, argv, envp, flags));
}

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
