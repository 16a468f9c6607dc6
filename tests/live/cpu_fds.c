/* SPDX-License-Identifier: MIT */
/*
 * A program that closes every descriptor, as daemons do, goes on being sampled,
 * and what it opens afterwards is never written into.
 */
#include "arch/kernel.h"
#include "load.h"
#include "session.h"
#include "tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *collected;
static size_t n_collected;

static int
collect(void *ctx, const void *data, size_t n_bytes)
{
    char *more = realloc(collected, n_collected + n_bytes);

    if (!more)
        return 12;
    memcpy(more + n_collected, data, n_bytes);
    collected = more;
    n_collected += n_bytes;
    return 0;
}

static void
start_collecting(void)
{
    struct cpprof_writer writer = {sizeof writer, collect, NULL, NULL};
    struct cpprof_cpu_options options = session_options(200);
    struct cpprof_error error = {0};

    n_collected = 0;
    if (cpprof_cpu_start(&writer, &options, &error))
        bail("start: %s", error.text);
}

static struct profile *
stop_collecting(void)
{
    struct cpprof_error error = {0};
    struct profile *p;
    char why[256];

    if (cpprof_cpu_stop(&error))
        bail("stop: %s", error.text);
    p = profile_unpack(collected, n_collected, why, sizeof why);
    if (!p)
        bail("%s", why);
    return p;
}

static void *
late_thread(void *arg)
{
    hog_two(150 * MS);
    return NULL;
}

static void
close_in_a_loop(void)
{
    long n = sysconf(_SC_OPEN_MAX);
    int fd;

    for (fd = 3; fd < (n > 1 << 20 ? 1 << 20 : n); fd++)
        close(fd);
}

static void
close_by_range(void)
{
    if (syscall(SYS_close_range, 3, ~0U, 0) != 0)
        close_in_a_loop();
}

static void
test_sampling_goes_on(void (*close_all)(void), const char *name)
{
    struct profile *p;
    pthread_t thread;

    start_collecting();
    hog_one(50 * MS);
    close_all();
    hog_one(300 * MS);
    pthread_create(&thread, NULL, late_thread, NULL);
    pthread_join(thread, NULL);
    p = stop_collecting();
    note("after %s", name);
    check_at_least((double)profile_cpu_in(p, "hog_one"), 0.25e9,
                   "after all descriptors were closed a thread is sampled");
    check_at_least((double)profile_cpu_in(p, "hog_two"), 0.1e9,
                   "a thread that came later is sampled too");
    profile_note(p, 2);
    profile_free(p);
}

static int
count_descriptors(void)
{
    int n = 0, fd;

    for (fd = 0; fd < 8192; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Events are opened once the thread ticks. */
static void
test_no_descriptor_of_ours_is_there(void)
{
    int before = count_descriptors();

    start_collecting();
    hog_one(150 * MS);
    check_equal(count_descriptors(), before,
                "while a thread is sampled the program has no new descriptor");
    profile_free(stop_collecting());
}

/* The numbers that were closed are handed out again. */
static void
test_own_files_untouched(void)
{
    char path[512], name[64], text[64];
    struct cpprof_writer writer;
    struct cpprof_cpu_options options = session_options(0);
    struct cpprof_error error = {0};
    struct profile *p;
    char why[256];
    int fds[16];
    int n_changed = 0;
    int i;

    snprintf(path, sizeof path, "%s", scratch_path("profile.pb.gz"));
    if (cpprof_writer_to_path(path, &writer, &error) ||
        cpprof_cpu_start(&writer, &options, &error))
        bail("%s", error.text);
    hog_one(50 * MS);
    close_by_range();
    for (i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "own.%d", i);
        fds[i] = open(scratch_path(name), O_RDWR | O_CREAT, 0600);
    }
    hog_one(100 * MS);
    if (cpprof_cpu_stop(&error) == CPPROF_OK) {
        p = profile_read(path, why, sizeof why);
        if (!check(p != NULL, "a stop that says it is fine wrote a whole file"))
            note("%s", why);
        profile_free(p);
    } else {
        note("stop: %s", error.text);
        check(access(path, F_OK) != 0, "a stop that failed left no file");
    }
    for (i = 0; i < 16; i++) {
        n_changed += lseek(fds[i], 0, SEEK_END) != 0;
        n_changed += read(fds[i], text, sizeof text) != 0;
        n_changed += fcntl(fds[i], F_GETFD) < 0;
        close(fds[i]);
    }
    check_equal(n_changed, 0, "files that the program opened are untouched");
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    scratch();
    test_sampling_goes_on(close_by_range, "close_range");
    test_sampling_goes_on(close_in_a_loop, "a loop of close");
    test_own_files_untouched();
    test_no_descriptor_of_ours_is_there();
    return check_done();
}
