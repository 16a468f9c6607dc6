/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops profiles of the test program itself, in a scratch folder
 * that is removed at its end, and repeats a measurement that chance may spoil.
 */
#include "session.h"
#include "tap.h"
#include "writers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum cpprof_engine engine = CPPROF_ENGINE_AUTO;
const char *engine_name = "auto";

static char directory[256];
static pid_t directory_owner;
static int n_sessions;
static char session_file[512];

static void
remove_scratch(void)
{
    DIR *dir;
    struct dirent *entry;
    char path[600];

    /* A forked child that exits leaves it to its parent. */
    if (getpid() != directory_owner || !(dir = opendir(directory)))
        return;
    while ((entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    rmdir(directory);
}

const char *
scratch(void)
{
    const char *top = getenv("TMPDIR");

    if (directory[0])
        return directory;
    snprintf(directory, sizeof directory, "%s/cpprof-live.XXXXXX",
             top && *top ? top : "/tmp");
    if (!mkdtemp(directory))
        bail("%s: %s", directory, strerror(errno));
    directory_owner = getpid();
    atexit(remove_scratch);
    return directory;
}

const char *
scratch_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", scratch(), name);
    return path;
}

struct cpprof_cpu_options
session_options(uint32_t rate_hz)
{
    return (struct cpprof_cpu_options){.size =
                                           sizeof(struct cpprof_cpu_options),
                                       .rate_hz = rate_hz,
                                       .engine = engine};
}

static enum cpprof_status
start(const struct cpprof_cpu_options *options, struct cpprof_error *error)
{
    struct cpprof_writer writer;
    char name[64];

    snprintf(name, sizeof name, "session.%d.%d.pb.gz", getpid(), n_sessions++);
    snprintf(session_file, sizeof session_file, "%s", scratch_path(name));
    if (cpprof_writer_to_path(session_file, &writer, error))
        bail("%s: %s", session_file, error->text);
    return cpprof_cpu_start(&writer, options, error);
}

void
session_start_with(const struct cpprof_cpu_options *options)
{
    struct cpprof_error error = {0};

    if (start(options, &error))
        bail("start with engine %s: %s", engine_name, error.text);
}

void
session_start(uint32_t rate_hz)
{
    struct cpprof_cpu_options options = session_options(rate_hz);

    session_start_with(&options);
}

struct profile *
session_stop(void)
{
    struct cpprof_error error = {0};
    struct profile *p;

    if (cpprof_cpu_stop(&error))
        bail("stop: %s", error.text);
    p = profile_load(session_file);
    unlink(session_file);
    return p;
}

/* In a child, so that this process has never been profiled when its test
 * begins. */
static void
skip_if_not_allowed(void)
{
    struct cpprof_cpu_options options = session_options(0);
    struct cpprof_error error = {0};
    int status;
    pid_t child = fork();

    if (child == 0) {
        options.symbolize = CPPROF_SYMBOLIZE_NONE;
        status = cpprof_cpu_start(
            (struct cpprof_writer[]){fd_writer(open("/dev/null", O_WRONLY))},
            &options, &error);
        if (status && status != CPPROF_UNSUPPORTED)
            note("start with engine %s: %s", engine_name, error.text);
        if (!status)
            status = cpprof_cpu_stop(&error);
        _exit(-status);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        bail("fork: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == -CPPROF_UNSUPPORTED)
        exit(check_skip_all("this engine is not allowed here"));
    if (status)
        bail("engine %s cannot be tried: wait status %x", engine_name, status);
}

void
session_engine(int argc, char **argv)
{
    static const char *const names[] = {
        [CPPROF_ENGINE_AUTO] = "auto",
        [CPPROF_ENGINE_PERF] = "perf",
        [CPPROF_ENGINE_TIMER] = "timer",
    };
    size_t i;

    if (argc > 1)
        engine_name = argv[1];
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(engine_name, names[i]) == 0) {
            engine = (enum cpprof_engine)i;
            skip_if_not_allowed();
            return;
        }
    }
    bail("unknown engine %s", engine_name);
}

static void
note_not_yet(const struct profile *p, double seconds)
{
    note("not yet after %g s: %.1f ms in %zu stacks", seconds,
         (double)profile_cpu_ns(p) / 1e6, p->n_samples);
}

struct profile *
session_until(uint32_t rate_hz, double first, double last,
              void (*work)(double seconds),
              bool (*good)(const struct profile *))
{
    struct profile *p = NULL;
    double seconds;

    for (seconds = first; seconds <= last; seconds *= 2) {
        profile_free(p);
        session_start(rate_hz);
        work(seconds);
        p = session_stop();
        if (good(p))
            return p;
        note_not_yet(p, seconds);
    }
    return p;
}

struct profile *
session_adding(uint32_t rate_hz, double first, double last,
               void (*work)(double seconds),
               bool (*good)(const struct profile *))
{
    struct profile *all = NULL, *p;
    double seconds, done;

    for (seconds = first, done = 0; done < last; seconds = done) {
        session_start(rate_hz);
        work(seconds);
        p = session_stop();
        if (all)
            profile_join(all, p);
        else
            all = p;
        done += seconds;
        if (good(all))
            break;
        note_not_yet(all, done);
    }
    return all;
}
