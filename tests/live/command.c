/* SPDX-License-Identifier: MIT */
/*
 * Runs a program with a time limit and keeps its status and output. Both pipes
 * are drained together, so that a program which fills one of them does not
 * hang.
 */
#include "command.h"
#include "tap.h"

#include <cpprof/cpprof.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct pipe_end {
    int fd;
    char *text;
    size_t n;
    size_t size;
};

static void
exec_child(const char *const argv[], const char *const environment[], int out,
           int err)
{
    int null = open("/dev/null", O_RDONLY);
    size_t i;

    dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    for (i = 0; environment && environment[i]; i++)
        putenv((char *)environment[i]);
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Take what is there; false at the end of the pipe. */
static bool
take_some(struct pipe_end *end)
{
    char chunk[4096];
    ssize_t n = read(end->fd, chunk, sizeof chunk);
    size_t room = end->size - 1 - end->n;

    if (n <= 0)
        return n < 0 && errno == EINTR;
    if ((size_t)n < room)
        room = (size_t)n;
    memcpy(end->text + end->n, chunk, room);
    end->n += room;
    end->text[end->n] = 0;
    return true;
}

static long
seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Read both pipes until both are closed. */
static void
drain_pipes(struct pipe_end ends[2], pid_t child, const char *name,
            unsigned seconds)
{
    long end = seconds_now() + (long)seconds;
    struct pollfd fds[2] = {{ends[0].fd, POLLIN, 0}, {ends[1].fd, POLLIN, 0}};
    int i;

    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        poll(fds, 2, 200);
        for (i = 0; i < 2; i++)
            if (fds[i].revents && !take_some(&ends[i]))
                fds[i].fd = -1;
        if (seconds_now() > end) {
            kill(child, SIGKILL);
            bail("%s did not end in %u seconds", name, seconds);
        }
    }
}

void
run_command(const char *const argv[], const char *const environment[],
            unsigned seconds, struct result *result)
{
    int out[2], err[2];
    struct pipe_end ends[2];

    memset(result, 0, sizeof *result);
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        bail("pipe: %s", strerror(errno));
    fflush(stdout);
    result->pid = fork();
    if (result->pid < 0)
        bail("fork: %s", strerror(errno));
    if (result->pid == 0)
        exec_child(argv, environment, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    ends[0] = (struct pipe_end){out[0], result->out, 0, sizeof result->out};
    ends[1] = (struct pipe_end){err[0], result->err, 0, sizeof result->err};
    drain_pipes(ends, result->pid, argv[0], seconds);
    while (waitpid(result->pid, &result->status, 0) < 0)
        if (errno != EINTR)
            bail("waitpid: %s", strerror(errno));
    close(out[0]);
    close(err[0]);
}

static void
directory_of(const char *path, char *folder, size_t size)
{
    char real[4096];
    char *slash;

    if (!realpath(path, real) || !(slash = strrchr(real, '/')))
        bail("%s: %s", path, strerror(errno));
    *slash = 0;
    snprintf(folder, size, "%s", real);
}

const char *
library_path(void)
{
    static char path[4096];
    Dl_info info;

    if (!dladdr((void *)cpprof_cpu_start, &info) ||
        !realpath(info.dli_fname, path))
        bail("libcpprof.so is not found");
    return path;
}

const char *
cpprof_path(void)
{
    static char path[4200];
    char folder[4096];

    directory_of(library_path(), folder, sizeof folder);
    snprintf(path, sizeof path, "%s/cpprof", folder);
    if (access(path, X_OK))
        bail("%s: %s", path, strerror(errno));
    return path;
}

const char *
beside_path(const char *name)
{
    static char path[4200];
    char folder[4096];

    directory_of("/proc/self/exe", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, R_OK))
        bail("%s: %s", path, strerror(errno));
    return path;
}

size_t
count_lines(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '\n' || !text[1];
    return n;
}
