/* SPDX-License-Identifier: MIT */
/*
 * A write error is returned, and a partial file is never taken for a whole one.
 */
#include "load.h"
#include "session.h"
#include "tap.h"
#include "writers.h"

#include <cpprof/profiles.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Profile a little into writer; what stop said. */
static enum cpprof_status
profile_into(struct cpprof_writer writer, struct cpprof_error *error)
{
    struct cpprof_cpu_options options = session_options(0);
    enum cpprof_status status;

    memset(error, 0, sizeof *error);
    status = cpprof_cpu_start(&writer, &options, error);
    if (status)
        bail("start: %s", error->text);
    hog_one(60 * MS);
    return cpprof_cpu_stop(error);
}

static void
test_device_full(void)
{
    struct cpprof_error error;
    int fd = open("/dev/full", O_WRONLY);
    FILE *file;

    if (fd < 0)
        bail("/dev/full: %s", strerror(errno));
    check_equal(profile_into(fd_writer(fd), &error), CPPROF_SYSTEM,
                "a full device is an error of stop");
    check_equal(error.sys, ENOSPC, "with its errno");
    check_has(error.text, "No space left on device", "and its text");
    check(fcntl(fd, F_GETFD) >= 0, "the descriptor stays open");
    close(fd);
    file = fopen("/dev/full", "w");
    check_equal(profile_into(stream_writer(file), &error), CPPROF_SYSTEM,
                "so with a stream");
    check_equal(error.sys, ENOSPC, "with its errno");
    fclose(file);
}

static void
test_file_too_large(void)
{
    struct cpprof_error error = {0};
    struct rlimit before, few;
    FILE *file = tmpfile();
    struct cpprof_writer writer = fd_writer(fileno(file));
    sigset_t pending;

    getrlimit(RLIMIT_FSIZE, &before);
    few = (struct rlimit){100, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &few);
    cpprof_profile_write(cpprof_profile_lookup("goroutine"), &writer, NULL,
                         &error);
    setrlimit(RLIMIT_FSIZE, &before);
    check_equal(error.sys, EFBIG, "RLIMIT_FSIZE is an error of a write");
    sigpending(&pending);
    check(!sigismember(&pending, SIGXFSZ), "and no signal");
    fclose(file);
}

static void
test_closed_descriptor(void)
{
    struct cpprof_error error;
    int fd = open("/dev/null", O_WRONLY);

    close(fd);
    check_equal(profile_into(fd_writer(fd), &error), CPPROF_SYSTEM,
                "a closed descriptor is an error of stop");
    check_equal(error.sys, EBADF, "with its errno");
}

/* --- a callback that fails -------------------------------------------------
 */

struct failing {
    size_t room; /* bytes until it fails */
    int n_after; /* writes after it failed */
    int n_closed;
    int failed;
    int close_error;
    bool has_failed;
};

static int
failing_write(void *ctx, const void *data, size_t n_bytes)
{
    struct failing *f = ctx;

    f->n_after += f->has_failed;
    if (n_bytes > f->room) {
        f->has_failed = true;
        return EDQUOT;
    }
    f->room -= n_bytes;
    return 0;
}

static int
failing_close(void *ctx, int failed)
{
    struct failing *f = ctx;

    f->n_closed++;
    f->failed = failed;
    return f->close_error;
}

static void
test_callback(void)
{
    struct failing f = {.room = 10};
    struct cpprof_writer writer = {sizeof writer, failing_write, failing_close,
                                   &f};
    struct cpprof_error error;
    struct profile *p;

    check_equal(profile_into(writer, &error), CPPROF_SYSTEM,
                "a callback that fails is an error of stop");
    check_equal(error.sys, EDQUOT, "with what it returned");
    check_equal(f.n_after, 0, "nothing more is written after that");
    check_equal(f.n_closed, 1, "it is closed once");
    check_equal(f.failed, 1, "as failed");
    f = (struct failing){.room = 1 << 20, .close_error = EIO};
    check_equal(profile_into(writer, &error), CPPROF_SYSTEM,
                "a close that fails is an error of stop");
    check_equal(error.sys, EIO, "with what it returned");
    check_equal(f.failed, 0, "closed as whole");
    session_start(0);
    hog_one(100 * MS);
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") > 0, "the next profile is fine");
    profile_free(p);
}

/* --- files -----------------------------------------------------------------
 */

static int
count_files(const char *path)
{
    struct dirent *entry;
    DIR *dir = opendir(path);
    int n = 0;

    if (!dir)
        bail("%s: %s", path, strerror(errno));
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return n;
}

static void
test_path(void)
{
    const char *path = scratch_path("whole.pb.gz");
    struct cpprof_cpu_options options = session_options(0);
    struct cpprof_writer writer;
    struct cpprof_error error = {0};
    struct profile *p;

    check_equal(count_files(scratch()), 0, "nothing is there at first");
    if (cpprof_writer_to_path(path, &writer, &error) ||
        cpprof_cpu_start(&writer, &options, &error))
        bail("%s", error.text);
    hog_one(60 * MS);
    check(access(path, F_OK) != 0, "while it runs the file is not there");
    check_equal(cpprof_cpu_stop(&error), CPPROF_OK, "stop is fine");
    check_equal(count_files(scratch()), 1, "then it is, and nothing else");
    p = profile_load(path);
    check(p->n_samples > 0, "and it is whole");
    profile_free(p);
    unlink(path);
}

/* The old file stays until the new one is whole, and for good when it fails. */
static void
test_path_that_fails(void)
{
    const char *path = scratch_path("missing/cpu.pb.gz");
    struct cpprof_error error = {0};
    struct cpprof_writer writer;

    check_equal(cpprof_writer_to_path(path, &writer, &error), CPPROF_SYSTEM,
                "a file that cannot be made is known before the start");
    check_equal(error.sys, ENOENT, "with its errno");
    check_has(error.text, "missing/cpu.pb.gz", "and its path");
    check_equal(count_files(scratch()), 0, "and nothing is left behind");
}

static void
test_refused_start(void)
{
    const char *path = scratch_path("refused.pb.gz");
    struct cpprof_cpu_options options = session_options(0);
    struct cpprof_error error = {0};
    struct cpprof_writer writer;

    options.rate_hz = 1000000;
    if (cpprof_writer_to_path(path, &writer, &error))
        bail("%s", error.text);
    check_equal(cpprof_cpu_start(&writer, &options, &error), CPPROF_INVALID,
                "a start that is refused");
    check_equal(count_files(scratch()), 0, "leaves no file behind");
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    scratch();
    test_device_full();
    test_file_too_large();
    test_closed_descriptor();
    test_path();
    test_path_that_fails();
    test_refused_start();
    test_callback();
    return check_done();
}
