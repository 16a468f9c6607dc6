/* SPDX-License-Identifier: MIT */
/*
 * The default profiles begin and end as Go's does: of several stops at once
 * each returns when the file is written, a start meanwhile waits, and one that
 * nobody stopped is written by exit(), or exit() says that it is not. Heap
 * profiles that are the first, and begin at once, are all written.
 */
#include "command.h"
#include "load.h"
#include "memory.h"
#include "profile.h"
#include "tap.h"

#include <cpprof/cpprof.h>
#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each byte of the file takes its time: who does not wait is seen. */
#define WRITE_US 300000

struct kind {
    const char *name;
    enum cpprof_status (*start)(struct cpprof_writer writer,
                                struct cpprof_error *error);
    enum cpprof_status (*stop)(struct cpprof_error *error);
};

static enum cpprof_status
start_cpu(struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof_cpu_options options = {
        .size = sizeof options,
        .symbolize = CPPROF_SYMBOLIZE_NONE,
    };

    return cpprof_cpu_start(&writer, &options, error);
}

static enum cpprof_status
start_wall(struct cpprof_writer writer, struct cpprof_error *error)
{
    const struct cpprof_wall_options options = {
        .size = sizeof options,
        .symbolize = CPPROF_SYMBOLIZE_NONE,
    };

    return cpprof_wall_start(&writer, &options, error);
}

static const struct kind kinds[] = {
    {"cpu", start_cpu, cpprof_cpu_stop},
    {"wall", start_wall, cpprof_wall_stop},
};

static bool
check_of(const struct kind *kind, bool ok, const char *name)
{
    char whole[160];

    snprintf(whole, sizeof whole, "%s: %s", kind->name, name);
    return check(ok, whole);
}

/* ---- a slow writer ---------------------------------------------------- */

static struct slow {
    const struct kind *kind;
    struct memory file;
    struct cpprof_writer into; /* that */
    atomic_bool is_writing;
    atomic_bool is_closed;
    bool stops_itself; /* its functions call stop and start */
    enum cpprof_status stop_status, start_status;
} slow;

static void
call_back(void)
{
    struct memory other = {0};

    if (!slow.stops_itself)
        return;
    slow.stops_itself = false;
    slow.stop_status = slow.kind->stop(NULL);
    slow.start_status = slow.kind->start(memory_writer(&other), NULL);
}

static int
slow_write(void *ctx, const void *data, size_t n)
{
    (void)ctx;
    atomic_store(&slow.is_writing, true);
    call_back();
    usleep(WRITE_US);
    return slow.into.write(slow.into.ctx, data, n);
}

static int
slow_close(void *ctx, int failed)
{
    int sys = slow.into.close(slow.into.ctx, failed);

    (void)ctx;
    atomic_store(&slow.is_closed, true);
    return sys;
}

static void
start_slow(const struct kind *kind, bool stops_itself)
{
    const struct cpprof_writer writer = {sizeof writer, slow_write, slow_close,
                                         NULL};
    struct cpprof_error error;

    memset(&slow, 0, sizeof slow);
    slow.kind = kind;
    slow.into = memory_writer(&slow.file);
    slow.stops_itself = stops_itself;
    if (kind->start(writer, &error) != CPPROF_OK)
        bail("%s: %s", kind->name, error.text);
    hog_one(100 * MS);
}

static void *
stop_it(void *arg)
{
    const struct kind *kind = arg;
    enum cpprof_status status = kind->stop(NULL);

    return (void *)(status == CPPROF_OK && atomic_load(&slow.is_closed) ? arg
                                                                        : NULL);
}

static pthread_t
stop_elsewhere(const struct kind *kind)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, stop_it, (void *)(uintptr_t)kind))
        bail("pthread_create");
    while (!atomic_load(&slow.is_writing))
        usleep(1000);
    return thread;
}

static bool
join_stop(pthread_t thread)
{
    void *result;

    pthread_join(thread, &result);
    return result != NULL;
}

static void
check_file(const struct kind *kind)
{
    struct profile *p = memory_profile(&slow.file);

    check_of(kind, p && p->n_samples > 0, "the file is whole");
    if (p)
        profile_free(p);
}

static void
test_second_stop(const struct kind *kind)
{
    pthread_t thread;
    enum cpprof_status status;
    bool was_closed;

    start_slow(kind, false);
    thread = stop_elsewhere(kind);
    status = kind->stop(NULL);
    was_closed = atomic_load(&slow.is_closed);
    check_of(kind, status == CPPROF_OK && was_closed,
             "a second stop returns when the profile is written");
    check_of(kind, join_stop(thread), "and so does the first");
    check_file(kind);
    check_of(kind, kind->stop(NULL) == CPPROF_OK,
             "a stop without a profile is harmless");
}

static void
test_start_while_written(const struct kind *kind)
{
    struct memory next = {0};
    struct cpprof_error error = {0};
    struct profile *p;
    pthread_t thread;
    enum cpprof_status status;
    bool was_closed;

    start_slow(kind, false);
    thread = stop_elsewhere(kind);
    status = kind->start(memory_writer(&next), &error);
    was_closed = atomic_load(&slow.is_closed);
    check_of(kind, status == CPPROF_OK && was_closed,
             "a start while the profile is written waits for that");
    join_stop(thread);
    check_file(kind);
    hog_one(100 * MS);
    kind->stop(NULL);
    p = memory_profile(&next);
    check_of(kind, p && p->n_samples > 0, "and its own has samples");
    if (p)
        profile_free(p);
}

static void
test_second_start(const struct kind *kind)
{
    struct memory refused = {0};
    struct cpprof_error error = {0};
    char want[64];

    start_slow(kind, false);
    snprintf(want, sizeof want, "%s profiling already in use", kind->name);
    check_of(kind,
             kind->start(memory_writer(&refused), &error) == CPPROF_BUSY &&
                 !strcmp(error.text, want),
             "a second start is told that there is one");
    check_of(kind, refused.n_closed == 1 && refused.failed,
             "and its writer is closed");
    kind->stop(NULL);
    check_file(kind);
}

static void
test_writer_calls_back(const struct kind *kind)
{
    start_slow(kind, true);
    check_of(kind, kind->stop(NULL) == CPPROF_OK,
             "a writer may call stop and start");
    check_of(kind,
             slow.stop_status == CPPROF_OK && slow.start_status == CPPROF_BUSY,
             "which do nothing");
    check_file(kind);
}

/* ---- exit() ----------------------------------------------------------- */

static int
write_nowhere(void *ctx, const void *data, size_t n)
{
    (void)ctx;
    (void)data;
    (void)n;
    return 0;
}

/* The program: start, and end without a stop. */
static int
leave(const char *name, const char *path)
{
    struct cpprof_writer writer = {sizeof writer, write_nowhere, NULL, NULL};
    const struct kind *kind = &kinds[strcmp(name, "wall") == 0];

    if (*path && cpprof_writer_to_path(path, &writer, NULL) != CPPROF_OK)
        return 3;
    if (kind->start(writer, NULL) != CPPROF_OK)
        return 4;
    hog_one(100 * MS);
    exit(7);
}

static void
run_leave(const char *self, const struct kind *kind, const char *path,
          struct result *result)
{
    const char *const argv[] = {self, "leave", kind->name, path, NULL};

    run_command(argv, NULL, 20, result);
    check_of(kind, result->status == 7 << 8,
             "a program that does not stop ends as it would");
}

static void
test_exit(const char *self, const struct kind *kind)
{
    char path[64], line[96];
    static struct result result;
    struct profile *p;
    char why[256];

    snprintf(path, sizeof path, "/tmp/profile_life.%d", (int)getpid());
    run_leave(self, kind, path, &result);
    p = profile_read(path, why, sizeof why);
    check_of(kind, p && p->n_samples > 0, "and its file is written");
    check_text(result.err, "", "without a word");
    if (p)
        profile_free(p);
    unlink(path);
    run_leave(self, kind, "", &result);
    snprintf(line, sizeof line,
             "cpprof: the %s profile was not stopped: not written\n",
             kind->name);
    check_text(result.err, line, "a writer of the program's is not called");
}

#define N_FIRST 2

static atomic_int n_there;

static void *
write_heap(void *arg)
{
    const struct cpprof_heap_options options = {.size = sizeof options};
    struct cpprof_error error;
    bool *good = arg;

    /* A barrier wakes one after the other, which is far too late. */
    atomic_fetch_add(&n_there, 1);
    while (atomic_load(&n_there) < N_FIRST)
        continue;
    *good =
        cpprof_heap_write_to_path("/dev/null", &options, &error) == CPPROF_OK;
    return NULL;
}

/* In a process that has no tables of a heap yet. */
static int
write_heaps_at_once(void)
{
    pthread_t threads[N_FIRST];
    bool good[N_FIRST];
    int i, n = 0;

    for (i = 0; i < N_FIRST; i++)
        pthread_create(&threads[i], NULL, write_heap, &good[i]);
    for (i = 0; i < N_FIRST; i++) {
        pthread_join(threads[i], NULL);
        n += good[i];
    }
    return n;
}

static void
test_first_heaps(char *self)
{
    char *command[] = {self, "heaps", NULL};
    int i, status, n = 0;

    for (i = 0; i < 100; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            setenv("CPPROF", "heap=0", 1);
            execv(self, command);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        n += WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    }
    check_equal(n, 100 * N_FIRST, "the first heap profiles, at once");
}

int
main(int argc, char **argv)
{
    size_t i;

    if (argc == 4 && !strcmp(argv[1], "leave"))
        return leave(argv[2], argv[3]);
    if (argc == 2 && !strcmp(argv[1], "heaps"))
        return write_heaps_at_once();
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        test_second_stop(&kinds[i]);
        test_start_while_written(&kinds[i]);
        test_second_start(&kinds[i]);
        test_writer_calls_back(&kinds[i]);
        test_exit(argv[0], &kinds[i]);
    }
    test_first_heaps(argv[0]);
    return check_done();
}
