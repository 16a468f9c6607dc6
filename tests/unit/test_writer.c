/* SPDX-License-Identifier: MIT */
/*
 * The ready writers: whole files or none, errors, and what stays open.
 */
#include <cpprof/writer.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/writer.h"
#include "oom.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* Each test has a directory of its own and stands in it. */
static char home[PATH_MAX];

static int
enter(void **state)
{
    char *path = strdup("/tmp/cpprof-test-XXXXXX");

    if (!path || !getcwd(home, sizeof home) || !mkdtemp(path) || chdir(path))
        return -1;
    *state = path;
    return 0;
}

/* Everything that is in the directory, for tests of what is left behind. */
static int
n_entries(void)
{
    DIR *d = opendir(".");
    int n = -2; /* . and .. */

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int
leave(void **state)
{
    DIR *d = opendir(".");
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (unlink(e->d_name) < 0)
            rmdir(e->d_name);
    closedir(d);
    rmdir(*state);
    free(*state);
    return chdir(home);
}

static void
put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void
check_file(const char *path, const char *want)
{
    char text[200] = "";
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    assert_string_equal(text, want);
}

static struct cpprof_writer
path_writer(const char *path)
{
    struct cpprof_writer w;
    struct cpprof_error error;

    if (cpprof_writer_to_path(path, &w, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    return w;
}

static void
write_text(struct cpprof_writer *w, const char *text)
{
    assert_int_equal(w->write(w->ctx, text, strlen(text)), 0);
}

static void
refused(const char *path, const char *want)
{
    const struct cpprof_writer zero = {0};
    struct cpprof_writer w;
    struct cpprof_error error;

    memset(&w, 0xff, sizeof w);
    assert_int_equal(cpprof_writer_to_path(path, &w, &error), CPPROF_SYSTEM);
    assert_string_equal(error.text, want);
    assert_memory_equal(&w, &zero, sizeof w);
}

/* --- what calls take -------------------------------------------------------*/

static int n_refused;

static int
count_refused(void *ctx, int failed)
{
    (void)ctx;
    n_refused += failed;
    return 0;
}

static int
take_nothing(void *ctx, const void *data, size_t n_bytes)
{
    (void)ctx, (void)data, (void)n_bytes;
    return EIO;
}

static void
writer_that_is_none_is_refused(void **state)
{
    const struct cpprof_writer good = {sizeof good, take_nothing, count_refused,
                                       NULL};
    struct cpprof_writer zero = {0},
                         mute = {sizeof mute, NULL, count_refused, NULL};
    struct cpprof_writer short_one = good, taken;
    struct cpprof_error error;

    (void)state;
    n_refused = 0;
    memset(&taken, 0xff, sizeof taken);
    assert_int_equal(cpprof__writer_take(NULL, &taken, &error), CPPROF_INVALID);
    assert_memory_equal(&taken, &zero, sizeof taken);
    assert_int_equal(cpprof__writer_take(&zero, &taken, &error),
                     CPPROF_INVALID);
    assert_non_null(strstr(error.text, "could not be made"));
    cpprof__writer_refuse(&taken); /* nothing happens */
    assert_int_equal(n_refused, 0);
    assert_int_equal(cpprof__writer_take(&mute, &taken, &error),
                     CPPROF_INVALID);
    assert_int_equal(n_refused, 1);
    assert_memory_equal(&taken, &zero, sizeof taken);
    short_one.size = sizeof short_one.size;
    assert_int_equal(cpprof__writer_take(&short_one, &taken, &error),
                     CPPROF_INVALID);
    assert_int_equal(cpprof__writer_take(&good, &taken, &error), CPPROF_OK);
    assert_memory_equal(&taken, &good, sizeof taken);
    cpprof__writer_refuse(&taken);
    assert_int_equal(n_refused, 2);
    assert_int_equal(cpprof_writer_to_path(NULL, &taken, &error),
                     CPPROF_INVALID);
    assert_memory_equal(&taken, &zero, sizeof taken);
}

/* --- a descriptor ----------------------------------------------------------
 */

static void
descriptor_gets_the_bytes_and_stays_open(void **state)
{
    struct cpprof_writer w;
    int fd = open("file", O_WRONLY | O_CREAT, 0600);

    (void)state;
    cpprof_writer_to_fd(fd, &w);
    write_text(&w, "one ");
    write_text(&w, "two");
    assert_true(!w.close || w.close(w.ctx, 0) == 0);
    assert_int_equal(close(fd), 0);
    check_file("file", "one two");
}

static void
descriptor_error_is_returned(void **state)
{
    int fd = open("/dev/full", O_WRONLY);
    struct cpprof_writer w;

    (void)state;
    cpprof_writer_to_fd(fd, &w);
    assert_int_equal(w.write(w.ctx, "x", 1), ENOSPC);
    close(fd);
    assert_int_equal(w.write(w.ctx, "x", 1), EBADF);
}

static volatile sig_atomic_t n_sigpipe;

static void
count_sigpipe(int signal)
{
    (void)signal;
    n_sigpipe++;
}

static void
reader_that_went_away_is_an_error_and_no_signal(void **state)
{
    struct sigaction count = {.sa_handler = count_sigpipe}, before;
    struct cpprof_writer w;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(sigaction(SIGPIPE, &count, &before), 0);
    close(fds[0]);
    cpprof_writer_to_fd(fds[1], &w);
    assert_int_equal(w.write(w.ctx, "x", 1), EPIPE);
    assert_int_equal(n_sigpipe, 0);
    /* The program's own writes keep their signal. */
    assert_int_equal(write(fds[1], "x", 1), -1);
    assert_int_equal(n_sigpipe, 1);
    sigaction(SIGPIPE, &before, NULL);
    close(fds[1]);
}

#define PIPE_BYTES (1 << 20)

static void *
read_slowly(void *fd)
{
    static char data[PIPE_BYTES];
    size_t n = 0;
    ssize_t got;

    while ((got = read(*(int *)fd, data, 10000)) > 0) {
        n += (size_t)got;
        usleep(200);
    }
    return (void *)n;
}

static void
nothing(int signal)
{
    (void)signal;
}

/* A full pipe that does not block, and signals all the time. */
static void
short_writes_and_interruptions_are_gone_on_with(void **state)
{
    static const char data[PIPE_BYTES];
    struct sigaction act = {.sa_handler = nothing}, before;
    struct itimerval often = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct cpprof_writer w;
    sigset_t alarm_only;
    pthread_t thread;
    void *n;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    sigaction(SIGALRM, &act, &before);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL); /* not the reader's read() */
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &fds[0]), 0);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    cpprof_writer_to_fd(fds[1], &w);
    assert_int_equal(w.write(w.ctx, data, sizeof data), 0);
    close(fds[1]);
    setitimer(ITIMER_REAL, &off, NULL);
    assert_int_equal(pthread_join(thread, &n), 0);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal((size_t)n, sizeof data);
    close(fds[0]);
}

/* --- a stream --------------------------------------------------------------*/

static void
stream_is_flushed_at_the_end_and_stays_open(void **state)
{
    FILE *f = fopen("file", "w");
    struct cpprof_writer w;

    (void)state;
    cpprof_writer_to_stream(f, &w);
    write_text(&w, "one");
    assert_int_equal(w.close(w.ctx, 0), 0);
    check_file("file", "one");
    fputs(" two", f);
    assert_int_equal(fclose(f), 0);
    check_file("file", "one two");
}

static void
stream_error_is_returned(void **state)
{
    FILE *f = fopen("/dev/full", "w");
    struct cpprof_writer w;

    (void)state;
    cpprof_writer_to_stream(f, &w);
    write_text(&w, "fits into the buffer");
    assert_int_equal(w.close(w.ctx, 0), ENOSPC);
    fclose(f);
}

static void
reader_of_a_stream_that_went_away_is_an_error_and_no_signal(void **state)
{
    struct sigaction count = {.sa_handler = count_sigpipe}, before;
    static const char many[BUFSIZ * 2];
    struct cpprof_writer w;
    FILE *f;
    int fds[2];

    (void)state;
    n_sigpipe = 0;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(sigaction(SIGPIPE, &count, &before), 0);
    close(fds[0]);
    f = fdopen(fds[1], "w");
    cpprof_writer_to_stream(f, &w);
    assert_int_equal(w.write(w.ctx, many, sizeof many), EPIPE);
    assert_int_equal(w.write(w.ctx, "x", 1), 0); /* into the buffer */
    assert_int_equal(w.close(w.ctx, 0), EPIPE);
    assert_int_equal(n_sigpipe, 0);
    fclose(f);
    sigaction(SIGPIPE, &before, NULL);
}

static void
stream_that_could_not_be_opened_makes_no_writer(void **state)
{
    struct cpprof_writer w, zero = {0};

    (void)state;
    memset(&w, 1, sizeof w);
    cpprof_writer_to_stream(fopen("missing/file", "w"), &w);
    assert_memory_equal(&w, &zero, sizeof w);
}

/* --- a path ----------------------------------------------------------------*/

static void
path_appears_whole_when_the_last_byte_is_there(void **state)
{
    struct cpprof_writer w = path_writer("file");

    (void)state;
    assert_int_equal(n_entries(), 0);
    write_text(&w, "one ");
    assert_int_equal(access("file", F_OK), -1);
    write_text(&w, "two");
    assert_int_equal(access("file", F_OK), -1);
    assert_int_equal(w.close(w.ctx, 0), 0);
    check_file("file", "one two");
    assert_int_equal(n_entries(), 1);
}

/* Whoever watches the folder sees nothing before there is something. */
static void
nothing_is_made_before_the_first_byte(void **state)
{
    struct cpprof_writer w;
    char events[4096];
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    (void)state;
    assert_true(inotify_add_watch(watch, ".", IN_CREATE | IN_DELETE) >= 0);
    w = path_writer("file");
    assert_int_equal(read(watch, events, sizeof events), -1);
    assert_int_equal(errno, EAGAIN);
    write_text(&w, "one");
    assert_true(read(watch, events, sizeof events) > 0);
    assert_int_equal(w.close(w.ctx, 0), 0);
    close(watch);
}

static void
failed_path_keeps_what_was_there(void **state)
{
    struct cpprof_writer w;

    (void)state;
    put_file("file", "old");
    w = path_writer("file");
    write_text(&w, "half of the n");
    assert_int_equal(w.close(w.ctx, 1), 0);
    check_file("file", "old");
    assert_int_equal(n_entries(), 1);
    w = path_writer("file");
    assert_int_equal(w.close(w.ctx, 1), 0);
    assert_int_equal(n_entries(), 1);
}

static void
path_without_a_byte_is_an_empty_file(void **state)
{
    struct cpprof_writer w = path_writer("file");

    (void)state;
    assert_int_equal(w.close(w.ctx, 0), 0);
    check_file("file", "");
}

static void
modes_are_those_of_an_ordinary_file(void **state)
{
    struct cpprof_writer w;
    struct stat st;
    mode_t mask = umask(027);

    (void)state;
    w = path_writer("file");
    assert_int_equal(w.close(w.ctx, 0), 0);
    assert_int_equal(stat("file", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod("file", 0604), 0);
    w = path_writer("file");
    assert_int_equal(w.close(w.ctx, 0), 0);
    assert_int_equal(stat("file", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
    umask(mask);
}

/* The program may go elsewhere, and close all it has, before the end. */
static void
path_is_found_again_after_chdir_and_closefrom(void **state)
{
    struct cpprof_writer w = path_writer("file");
    int fds[20], i;

    assert_int_equal(chdir("/"), 0);
    for (i = 0; i < 20; i++)
        fds[i] = open("/dev/full", O_WRONLY);
    write_text(&w, "one");
    assert_int_equal(w.close(w.ctx, 0), 0);
    for (i = 0; i < 20; i++)
        close(fds[i]);
    assert_int_equal(chdir(*state), 0);
    check_file("file", "one");
}

static void
link_is_followed_and_stays(void **state)
{
    struct cpprof_writer w;
    struct stat st;

    (void)state;
    put_file("target", "old");
    assert_int_equal(symlink("target", "link"), 0);
    w = path_writer("link");
    write_text(&w, "new");
    assert_int_equal(w.close(w.ctx, 0), 0);
    check_file("target", "new");
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void
device_is_written_and_not_replaced(void **state)
{
    struct cpprof_writer w = path_writer("/dev/null");
    struct stat st;

    (void)state;
    write_text(&w, "one");
    assert_int_equal(w.close(w.ctx, 0), 0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    w = path_writer("/dev/full");
    assert_int_equal(w.write(w.ctx, "x", 1), ENOSPC);
    assert_int_equal(w.close(w.ctx, 1), 0);
}

static void
file_without_a_name_is_written_where_it_is(void **state)
{
    int fd = memfd_create("profile", MFD_CLOEXEC);
    const char *const texts[] = {"longer", "one"};
    struct cpprof_writer w;
    char path[40], got[8];
    unsigned i;

    (void)state;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (i = 0; i < 2; i++) {
        w = path_writer(path);
        write_text(&w, texts[i]);
        assert_int_equal(w.close(w.ctx, 0), 0);
        assert_int_equal(pread(fd, got, sizeof got, 0), strlen(texts[i]));
        assert_memory_equal(got, texts[i], strlen(texts[i]));
    }
    close(fd);
}

static void
path_that_cannot_be_created_is_refused_at_once(void **state)
{
    char name[NAME_MAX + 2] = "";
    struct cpprof_error error;
    struct cpprof_writer w;

    (void)state;
    assert_int_equal(mkdir("directory", 0700), 0);
    refused("directory", "directory: Is a directory");
    refused("new/", "new/: Is a directory");
    refused("missing/file", "missing/file: No such file or directory");
    refused("/proc/self/maps/x", "/proc/self/maps/x: Not a directory");
    refused("", ": No such file or directory");
    memset(name, 'x', NAME_MAX + 1);
    assert_int_equal(cpprof_writer_to_path(name, &w, &error), CPPROF_SYSTEM);
    assert_int_equal(error.sys, ENAMETOOLONG);
    put_file("file", "");
    assert_int_equal(chmod("file", 0), 0);
    if (geteuid() != 0)
        refused("file", "file: Permission denied");
    else
        refused("/proc/x", "/proc/x: No such file or directory");
    assert_int_equal(n_entries(), 2);
}

static void
longest_name_there_can_be_is_written(void **state)
{
    char name[NAME_MAX + 1] = "";
    struct cpprof_writer w;

    (void)state;
    memset(name, 'x', NAME_MAX);
    w = path_writer(name);
    write_text(&w, "one");
    assert_int_equal(n_entries(), 1);
    assert_int_equal(access(name, F_OK), -1);
    assert_int_equal(w.close(w.ctx, 0), 0);
    check_file(name, "one");
    assert_int_equal(n_entries(), 1);
}

static void
error_of_the_last_step_is_returned_and_nothing_left(void **state)
{
    struct cpprof_writer w = path_writer("file");

    (void)state;
    write_text(&w, "one");
    /* A directory in the way: rename fails. */
    assert_int_equal(mkdir("file", 0700), 0);
    assert_int_equal(w.close(w.ctx, 0), EISDIR);
    assert_int_equal(n_entries(), 1);
}

static void
every_allocation_of_a_path_may_fail(void **state)
{
    long n;

    (void)state;
    for (n = 0;; n++) {
        struct cpprof_writer w = {0};
        struct cpprof_error error;
        enum cpprof_status status;

        oom_watch();
        oom.countdown = n;
        status = cpprof_writer_to_path("file", &w, &error);
        if (status == CPPROF_OK) {
            int sys = w.write(w.ctx, "one", 3);

            assert_int_equal(w.close(w.ctx, sys != 0), 0);
            status = sys ? CPPROF_NOMEM : CPPROF_OK;
            assert_true(sys == 0 || sys == ENOMEM);
        } else {
            assert_string_equal(error.text, "out of memory");
        }
        oom.countdown = -1;
        assert_int_equal(oom.n_live, 0);
        assert_int_equal(n_entries(), status == CPPROF_OK);
        if (status == CPPROF_OK)
            break;
        assert_int_equal(status, CPPROF_NOMEM);
    }
    assert_true(n >= 5);
    check_file("file", "one");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writer_that_is_none_is_refused),
        TEST(descriptor_gets_the_bytes_and_stays_open),
        TEST(descriptor_error_is_returned),
        TEST(reader_that_went_away_is_an_error_and_no_signal),
        TEST(short_writes_and_interruptions_are_gone_on_with),
        TEST(stream_is_flushed_at_the_end_and_stays_open),
        TEST(stream_error_is_returned),
        TEST(reader_of_a_stream_that_went_away_is_an_error_and_no_signal),
        TEST(stream_that_could_not_be_opened_makes_no_writer),
        TEST(longest_name_there_can_be_is_written),
        TEST(path_appears_whole_when_the_last_byte_is_there),
        TEST(nothing_is_made_before_the_first_byte),
        TEST(failed_path_keeps_what_was_there),
        TEST(path_without_a_byte_is_an_empty_file),
        TEST(modes_are_those_of_an_ordinary_file),
        TEST(path_is_found_again_after_chdir_and_closefrom),
        TEST(link_is_followed_and_stays),
        TEST(device_is_written_and_not_replaced),
        TEST(file_without_a_name_is_written_where_it_is),
        TEST(path_that_cannot_be_created_is_refused_at_once),
        TEST(error_of_the_last_step_is_returned_and_nothing_left),
        TEST(every_allocation_of_a_path_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
