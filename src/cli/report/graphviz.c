/* SPDX-License-Identifier: MIT */
/*
 * dot reads the graph from a file in memory and writes the picture into a
 * pipe; no shell is between. Edges are left out before
 * (report/dot/limit_edges.c), and dot is told not to look for the best layout
 * for long, because the time that it takes grows steeply with the edges: 80
 * nodes and 596 edges took a minute and more, and now take a second.
 */
#include "cli/report/graphviz.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Limits of dot's work: rounds of its network simplex, in nodes, and a factor
 * for its search for crossings. Smaller ones are faster and draw more crooked
 * edges. */
#define LIMITS "-Gnslimit=2", "-Gnslimit1=2", "-Gmclimit=0.5"

static enum cpprof_status
fail(struct cpprof_error *error, int sys, const char *format, ...)
{
    va_list args;

    error->status = CPPROF_SYSTEM;
    error->sys = sys;
    error->offset = 0;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return CPPROF_SYSTEM;
}

/* ------------------------------------------------------------- graph ---- */

/* Write the graph's text to a file without a name, to be read from its start.
 */
static enum cpprof_status
write_graph(struct pprof_profile *profile,
            const struct pprof_report_options *options, int *fd,
            struct cpprof_error *error)
{
    struct pprof_report_options o = *options;
    struct cpprof_writer writer;
    enum cpprof_status status;

    o.flags |= PPROF_REPORT_PICTURE;
    *fd = memfd_create("graph", MFD_CLOEXEC);
    if (*fd < 0)
        return fail(error, errno, "no memory for the graph: %s",
                    strerror(errno));
    cpprof_writer_to_fd(*fd, &writer);
    status = pprof_report_write(profile, &writer, PPROF_REPORT_DOT, &o, error);
    if (status == CPPROF_OK && lseek(*fd, 0, SEEK_SET) != 0)
        status = fail(error, errno, "reading the graph: %s", strerror(errno));
    return status;
}

/* --------------------------------------------------------------- dot ---- */

static enum cpprof_status
start_dot(const char *type, int graph, int picture, pid_t *pid,
          struct cpprof_error *error)
{
    char format[16];
    char *argv[] = {"dot", format, LIMITS, NULL};
    posix_spawn_file_actions_t actions;
    int failure;

    snprintf(format, sizeof format, "-T%s", type);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, graph, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, picture, STDOUT_FILENO);
    failure = posix_spawnp(pid, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure == ENOENT)
        return fail(error, failure,
                    "failed to execute dot. Is Graphviz installed? "
                    "(Debian: apt install graphviz; -flamegraph needs none)");
    if (failure)
        return fail(error, failure, "failed to execute dot: %s",
                    strerror(failure));
    return CPPROF_OK;
}

static enum cpprof_status
wait_for_dot(pid_t pid, struct cpprof_error *error)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CPPROF_OK;
    if (WIFSIGNALED(status))
        return fail(error, 0, "dot was ended by signal %d", WTERMSIG(status));
    return fail(error, 0, "dot failed with status %d", WEXITSTATUS(status));
}

/* ----------------------------------------------------------- picture ---- */

/* Where a picture goes. An SVG is collected first. */
struct sink {
    const struct cpprof_writer *to;
    FILE *svg; /* or NULL */
    char *text;
    size_t n;
    int failure;
};

static void
pass_on(struct sink *sink, const void *bytes, size_t n)
{
    if (sink->failure)
        return;
    if (!sink->svg)
        sink->failure = sink->to->write(sink->to->ctx, bytes, n);
    else if (fwrite(bytes, 1, n, sink->svg) != n)
        sink->failure = ENOMEM;
}

/* Read to the end even if the picture cannot be written, because dot waits for
 * that. */
static void
read_picture(struct sink *sink, int fd)
{
    char bytes[65536];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) != 0)
        if (n > 0)
            pass_on(sink, bytes, (size_t)n);
        else if (errno != EINTR)
            break;
}

static enum cpprof_status
finish(struct sink *sink, enum cpprof_status status, struct cpprof_error *error)
{
    if (sink->svg && fclose(sink->svg) != 0 && !sink->failure)
        sink->failure = ENOMEM;
    if (sink->svg && status == CPPROF_OK && !sink->failure)
        sink->failure = cpprof__write_svg(sink->text, sink->n, sink->to);
    free(sink->text);
    if (status == CPPROF_OK && sink->failure)
        status = fail(error, sink->failure, "writing the picture: %s",
                      strerror(sink->failure));
    return status;
}

static enum cpprof_status
run_dot(int graph, const char *type, const struct cpprof_writer *to,
        struct cpprof_error *error)
{
    struct sink sink = {.to = to};
    enum cpprof_status status;
    pid_t pid;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return fail(error, errno, "pipe: %s", strerror(errno));
    status = start_dot(type, graph, fds[1], &pid, error);
    close(fds[1]);
    if (status == CPPROF_OK) {
        if (strcmp(type, "svg") == 0) {
            sink.svg = open_memstream(&sink.text, &sink.n);
            sink.failure = sink.svg ? 0 : ENOMEM;
        }
        read_picture(&sink, fds[0]);
        status = finish(&sink, wait_for_dot(pid, error), error);
    }
    close(fds[0]);
    return status;
}

enum cpprof_status
cpprof__draw(struct pprof_profile *profile,
             const struct pprof_report_options *options, const char *type,
             struct cpprof_writer writer, struct cpprof_error *error)
{
    int graph = -1, failure = 0;
    enum cpprof_status status = write_graph(profile, options, &graph, error);

    if (status == CPPROF_OK)
        status = run_dot(graph, type, &writer, error);
    if (graph >= 0)
        close(graph);
    if (writer.close)
        failure = writer.close(writer.ctx, status != CPPROF_OK);
    if (status == CPPROF_OK && failure)
        status =
            fail(error, failure, "writing the picture: %s", strerror(failure));
    return status;
}
