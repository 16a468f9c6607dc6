/* SPDX-License-Identifier: MIT */
/*
 * Running objdump, nm and the like: finding the program, and reading what it
 * prints.
 *
 * No shell is involved. Output is bounded in bytes and in time; beyond either
 * the child is killed and the call fails.
 *
 * Source: internal/binutils/binutils.go initTools, findExe.
 */
#include "report/code/binutils.h"

#include "arch/clock.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --------------------------------------------------------------- finding -- */

/* The terminated path dir/name, if it is a program. */
static bool
try_path(const char *dir, size_t n_dir, const char *name,
         struct cpprof__buffer *path)
{
    size_t begin = path->n;
    struct stat st;

    cpprof__buffer_append(path, dir, n_dir);
    if (n_dir && dir[n_dir - 1] != '/')
        cpprof__buffer_append(path, "/", 1);
    cpprof__buffer_append(path, name, strlen(name) + 1);
    if (path->failed)
        return false;
    if (stat((char *)path->data + begin, &st) == 0 && S_ISREG(st.st_mode) &&
        access((char *)path->data + begin, X_OK) == 0)
        return true;
    path->n = begin;
    return false;
}

/* In the folders of -tools that are for the tool `of`, or for all. */
static bool
find_given(const char *tools, const char *of, const char *name,
           struct cpprof__buffer *path)
{
    size_t n_of = strlen(of);

    while (tools && *tools) {
        size_t n = strcspn(tools, ","), k = strcspn(tools, ":");
        const char *dir = tools;

        tools += n + (tools[n] == ',');
        if (k >= n)
            k = 0;
        else if (k != n_of || memcmp(dir, of, k) != 0)
            continue;
        else
            k++;
        if (n > k && try_path(dir + k, n - k, name, path))
            return true;
    }
    return false;
}

static bool
find_on_path(const char *name, struct cpprof__buffer *path)
{
    const char *dirs = getenv("PATH");

    while (dirs && *dirs) {
        size_t n = strcspn(dirs, ":");

        /* As Go: never a program of the current folder by accident. */
        if (*dirs == '/' && try_path(dirs, n, name, path))
            return true;
        dirs += n + (dirs[n] == ':');
    }
    return false;
}

bool
cpprof__tool_find(const char *tools, const char *of, const char *const *names,
                  struct cpprof__buffer *path)
{
    const char *const *name;

    for (name = names; *name; name++)
        if (find_given(tools, of, *name, path))
            return true;
    for (name = names; *name; name++)
        if (find_on_path(*name, path))
            return true;
    return false;
}

void
cpprof__tool_file(const char *path, struct cpprof__buffer *out)
{
    if (*path != '/')
        cpprof__buffer_append(out, "./", 2);
    cpprof__buffer_append(out, path, strlen(path) + 1);
}

/* --------------------------------------------------------------- running -- */

/* Start it with its output in a pipe; 0 or what failed, and then nothing is
 * open.
 */
static int
start(const char *const *words, pid_t *pid, int *output)
{
    posix_spawn_file_actions_t actions;
    int ends[2], failed;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                                  "/dev/null", O_RDONLY, 0);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, ends[1],
                                                      STDOUT_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                                      "/dev/null", O_WRONLY, 0);
        if (!failed)
            failed = posix_spawn(pid, words[0], &actions, NULL,
                                 (char *const *)words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (failed)
        close(ends[0]);
    *output = ends[0];
    return failed;
}

static int64_t
now_ms(void)
{
    return (int64_t)(cpprof__now_ns(CLOCK_MONOTONIC) / 1000000);
}

/* Read what it prints to its end; 0, or what went wrong. */
static int
read_output(int fd, const struct cpprof__tool_run *run,
            struct cpprof__buffer *out)
{
    int64_t end = now_ms() + (int64_t)run->timeout_s * 1000, left;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t begin = out->n;
    ssize_t n = 1;
    int ready;

    while (n > 0) {
        left = end - now_ms();
        ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno != EINTR)
            return errno;
        if (ready == 0)
            return ETIMEDOUT;
        if (ready < 0)
            continue;
        if (out->n - begin > run->most_bytes)
            return EFBIG;
        if (!cpprof__buffer_reserve(out, 64 << 10))
            return ENOMEM;
        n = read(fd, out->data + out->n, out->capacity - out->n);
        if (n < 0 && errno != EINTR)
            return errno;
        out->n += n > 0 ? (size_t)n : 0;
        n = n < 0 ? 1 : n;
    }
    return 0;
}

static enum cpprof_status
fail(const struct cpprof__tool_run *run, const char *what, int number,
     struct cpprof_error *error)
{
    struct cpprof__buffer text = {0};
    const char *const *word;
    enum cpprof_status status;

    for (word = run->words; *word; word++)
        cpprof__buffer_printf(&text, "%s%s", word == run->words ? "" : " ",
                              *word);
    status = cpprof__fail(error, CPPROF_SYSTEM, 0, "[%.*s]: %s %d", (int)text.n,
                          text.n ? (char *)text.data : "", what, number);
    cpprof__buffer_free(&text);
    return status;
}

enum cpprof_status
cpprof__tool_run(const struct cpprof__tool_run *run, struct cpprof__buffer *out,
                 struct cpprof_error *error)
{
    pid_t pid;
    int fd = -1, failed = start(run->words, &pid, &fd), how = 0;

    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "%s: %s",
                            run->words[0], strerror(failed));
    failed = read_output(fd, run, out);
    close(fd);
    if (failed)
        kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (failed == ENOMEM)
        return cpprof__fail_nomem(error);
    if (failed == ETIMEDOUT || failed == EFBIG)
        return cpprof__fail(error, CPPROF_LIMIT, 0, "%s: it %s", run->words[0],
                            failed == EFBIG ? "printed too much"
                                            : "took too long");
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "%s: %s",
                            run->words[0], strerror(failed));
    if (WIFSIGNALED(how))
        return fail(run, "signal", WTERMSIG(how), error);
    return WEXITSTATUS(how) ? fail(run, "exit status", WEXITSTATUS(how), error)
                            : CPPROF_OK;
}
