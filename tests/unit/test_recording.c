/* SPDX-License-Identifier: MIT */
/* Which images of a folder are read while processes still run, and what is
 * left of those that were taken away. */
#include "arch/clock.h"
#include "collect/signal/tables/mirror.h"
#include "collect/store/spool.h"
#include <cpprof/recording.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder_fixture.h"

static char folder[] = "/tmp/cpprof-test-XXXXXX";

/* A process with five samples, which was last heard of that long ago, and then
 * is killed or waits. Its pid, once its files are there. */
static pid_t
record(enum cpprof__spool_state state, uint64_t ago_ns, bool is_killed)
{
    uint64_t pc = 0x1000, now_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    uint32_t mapping = CPPROF__NO_MAPPING;
    struct cpprof__spool spool;
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (cpprof__spool_make(&spool, folder, 1 << 14, NULL) != CPPROF_OK)
            _exit(1);
        spool.head->rate_hz = 100;
        spool.head->period_ns = 10000000;
        spool.head->start_ns = 1700000000000000000;
        spool.head->last_mono_ns = now_ns - ago_ns;
        spool.head->state = state;
        cpprof__store_add(&spool.store, &pc, &mapping, 1, 0, 5);
        if (write(ready[1], "", 1) == 1 && is_killed)
            raise(SIGKILL);
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    if (is_killed)
        waitpid(pid, NULL, 0);
    return pid;
}

static struct cpprof_recording *
read_ended(size_t max, size_t expected)
{
    struct cpprof_recording *recording;

    assert_int_equal(cpprof_recording_read_ended(folder, max, &recording, NULL),
                     CPPROF_OK);
    assert_int_equal(cpprof_recording_image_count(recording), expected);
    return recording;
}

static void
what_is_over_is_taken_away_and_nothing_else(void **state)
{
    const uint64_t second = 1000000000;
    struct cpprof_recording *recording;
    pid_t pid = record(CPPROF__SPOOL_RUNNING, 60 * second, false);

    (void)state;
    record(CPPROF__SPOOL_RUNNING, second, true); /* or in another namespace */
    record(CPPROF__SPOOL_RUNNING, 60 * second, true);
    record(CPPROF__SPOOL_ENDED, 0, true);
    assert_int_equal(folder_files(folder, false), 8);
    recording = read_ended(10, 2);
    assert_int_equal(cpprof_recording_image_at(recording, 0)->n_samples, 5);
    cpprof_recording_remove(recording);
    assert_int_equal(folder_files(folder, false), 4);
    assert_int_equal(cpprof_recording_write_cpu_to_path(
                         recording, 0, "/dev/null", NULL, NULL),
                     CPPROF_BAD_DATA);
    cpprof_recording_free(recording);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void
no_more_are_read_than_asked_for(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 3; i++)
        record(CPPROF__SPOOL_ENDED, 0, true);
    cpprof_recording_free(read_ended(2, 2));
    cpprof_recording_free(read_ended(3, 3));
}

/* ---- files of somebody with fewer rights ------------------------------ */

static char *
in_folder(const char *name)
{
    static char path[2][100];
    static unsigned turn;
    char *to = path[turn++ % 2];

    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static const char *
name_of(pid_t pid, const char *end)
{
    static char name[2][40];
    static unsigned turn;
    char *to = name[turn++ % 2];

    snprintf(to, sizeof name[0], "%d%s", (int)pid, end);
    return to;
}

static size_t
n_read(void)
{
    struct cpprof_recording *recording;
    size_t n;

    assert_int_equal(cpprof_recording_read(folder, &recording, NULL),
                     CPPROF_OK);
    n = cpprof_recording_image_count(recording) +
        cpprof_recording_heap_count(recording);
    cpprof_recording_free(recording);
    return n;
}

static void
what_is_no_file_is_not_opened(void **state)
{
    pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true);

    (void)state;
    assert_int_equal(n_read(), 1);
    assert_int_equal(rename(in_folder(name_of(pid, ".0")), in_folder("kept")),
                     0);
    assert_int_equal(symlink("kept", in_folder(name_of(pid, ".0"))), 0);
    assert_int_equal(symlink("kept", in_folder("7.0.tables")), 0);
    assert_int_equal(mkfifo(in_folder("8.0"), 0600), 0);
    assert_int_equal(mkfifo(in_folder("8.0.tables"), 0600), 0);
    assert_int_equal(mkdir(in_folder("9.0"), 0700), 0);
    assert_int_equal(n_read(), 0);
    rmdir(in_folder("9.0"));
}

static void
a_file_is_that_of_whom_it_says(void **state)
{
    pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true);

    (void)state;
    assert_int_equal(
        rename(in_folder(name_of(pid, ".0")), in_folder("2147483647.0")), 0);
    assert_int_equal(n_read(), 0);
}

static void
a_file_of_another_user_is_read(void **state)
{
    pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true);

    (void)state;
    if (chown(in_folder(name_of(pid, ".0")), 65534, 65534))
        skip(); /* for root */
    assert_int_equal(n_read(), 1);
}

static void
a_file_that_has_another_name_is_not_read(void **state)
{
    pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true);
    char other[PATH_MAX];

    (void)state;
    snprintf(other, sizeof other, "%s", in_folder("other"));
    assert_int_equal(link(in_folder(name_of(pid, ".0")), other), 0);
    assert_int_equal(n_read(), 0);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(n_read(), 1);
}

static void
a_terabyte_of_nothing_takes_no_memory(void **state)
{
    pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true);
    const char *const ends[] = {".0", ".0.0"};
    struct rusage usage;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++)
        assert_int_equal(
            truncate(in_folder(name_of(pid, ends[i])), (off_t)1 << 40), 0);
    close(open(in_folder("6.0.tables"), O_WRONLY | O_CREAT, 0600));
    assert_int_equal(truncate(in_folder("6.0.tables"), (off_t)1 << 40), 0);
    assert_int_equal(n_read(), 1);
    getrusage(RUSAGE_SELF, &usage);
    assert_true(usage.ru_maxrss < 256 * 1024);
}

/* A file that is mapped and becomes shorter is a SIGBUS. */
static void
files_that_become_shorter_are_read(void **state)
{
    pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true), other;
    char head[4096];
    struct stat st[2];
    int i, fd, file[2];

    (void)state;
    fd = open(in_folder(name_of(pid, ".0")), O_RDONLY);
    assert_int_equal(read(fd, head, sizeof head), sizeof head);
    close(fd);
    other = fork();
    if (!other) {
        file[0] = open(in_folder(name_of(pid, ".0")), O_RDWR);
        file[1] = open(in_folder(name_of(pid, ".0.0")), O_RDWR);
        for (i = 0; i < 2; i++)
            if (fstat(file[i], &st[i]))
                _exit(1);
        for (;;)
            for (i = 0; i < 2; i++)
                if (ftruncate(file[i], i ? 0 : sizeof head) ||
                    ftruncate(file[i], st[i].st_size))
                    _exit(1);
    }
    for (i = 0; i < 500; i++)
        assert_true(n_read() <= 1);
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

/* ---- the end of a recorder -------------------------------------------- */

static void
the_end_of_a_recorder_stops_processes(void **state)
{
    const uint32_t *control;
    pid_t pid = fork();
    int status;

    (void)state;
    if (!pid)
        _exit(cpprof_recording_prepare(folder, NULL) == CPPROF_OK ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    control = cpprof__spool_control(folder);
    assert_non_null(control);
    assert_true(cpprof__control_is_stopped(control));
    munmap((void *)(uintptr_t)control, CPPROF__SPOOL_CONTROL_BYTES);
    unlink(in_folder("control"));

    assert_int_equal(cpprof_recording_prepare(folder, NULL), CPPROF_OK);
    control = cpprof__spool_control(folder);
    assert_false(cpprof__control_is_stopped(control));
    assert_int_equal(cpprof_recording_stop(folder, NULL), CPPROF_OK);
    assert_true(cpprof__control_is_stopped(control));
    munmap((void *)(uintptr_t)control, CPPROF__SPOOL_CONTROL_BYTES);
}

/* Whoever the folder was given to may rename any file of ours to that. */
static void
who_prepared_writes_to_nothing_else(void **state)
{
    char words[8] = "1234567";
    const uint32_t *control;
    int fd;

    (void)state;
    assert_int_equal(cpprof_recording_prepare(folder, NULL), CPPROF_OK);
    control = cpprof__spool_control(folder);
    fd = open(in_folder("other"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, words, sizeof words), sizeof words);
    assert_int_equal(
        renameat(AT_FDCWD, in_folder("other"), AT_FDCWD, in_folder("control")),
        0);
    assert_int_equal(cpprof_recording_stop(folder, NULL), CPPROF_OK);
    assert_true(cpprof__control_is_stopped(control));
    assert_int_equal(pread(fd, words, sizeof words, 0), sizeof words);
    assert_string_equal(words, "1234567");
    close(fd);
    munmap((void *)(uintptr_t)control, CPPROF__SPOOL_CONTROL_BYTES);
}

/* Its control may be any file of ours, by a second name. */
static void
a_folder_that_another_process_prepared_stays_as_it_is(void **state)
{
    char apart[] = "/tmp/cpprof-apart-XXXXXX", path[64], words[8] = "1234567";
    int fd;

    (void)state;
    assert_non_null(mkdtemp(apart));
    snprintf(path, sizeof path, "%s/control", apart);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, words, sizeof words), sizeof words);
    assert_int_equal(cpprof_recording_stop(apart, NULL), CPPROF_INVALID);
    assert_int_equal(pread(fd, words, sizeof words, 0), sizeof words);
    assert_string_equal(words, "1234567");
    close(fd);
    unlink(path);
    rmdir(apart);
}

/* ---- what somebody has written into them ------------------------------ */

static uint64_t
draw(void)
{
    static uint64_t random = 88172645463325252u;

    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
}

/* Some words of a file become others, from an offset on, where it has any; more
 * than half of them small numbers, which get further than others. */
static void
put_noise(const char *name, off_t from)
{
    int fd = open(in_folder(name), O_RDWR), i;
    off_t end = lseek(fd, 0, SEEK_END), at;
    uint64_t word;

    assert_true(fd >= 0);
    for (i = 0; i < 24; i++) {
        at = from + (off_t)(draw() % (uint64_t)(end - from));
        at = lseek(fd, draw() % 2 ? from : at, SEEK_DATA);
        at += (off_t)(draw() % 512 * sizeof word);
        word = draw() % 3 ? draw() % 70 : draw() << draw() % 48;
        if (at >= from && at + (off_t)sizeof word <= end)
            assert_int_equal(pwrite(fd, &word, sizeof word, at), sizeof word);
    }
    close(fd);
}

static void
noise_in_an_image_does_no_harm(void **state)
{
    const struct cpprof_cpu_options options = {
        .size = sizeof options, .symbolize = CPPROF_SYMBOLIZE_NONE};
    struct cpprof_recording *recording;
    int round;

    (void)state;
    for (round = 0; round < 40; round++) {
        pid_t pid = record(CPPROF__SPOOL_ENDED, 0, true);

        if (draw() % 2)
            put_noise(name_of(pid, ".0"), CPPROF__SPOOL_RING_OFFSET);
        put_noise(name_of(pid, ".0.0"), 0);
        assert_int_equal(
            cpprof_recording_read_ended(folder, 10, &recording, NULL),
            CPPROF_OK);
        cpprof_recording_write_cpu_to_path(recording, 0, "/dev/null", &options,
                                           NULL);
        cpprof_recording_free(recording);
        folder_files(folder, true);
    }
}

static int
empty_folder(void **state)
{
    (void)state;
    folder_files(folder, true);
    return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, empty_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_over_is_taken_away_and_nothing_else),
        CASE(no_more_are_read_than_asked_for),
        CASE(what_is_no_file_is_not_opened),
        CASE(a_file_is_that_of_whom_it_says),
        CASE(a_file_of_another_user_is_read),
        CASE(a_file_that_has_another_name_is_not_read),
        CASE(a_terabyte_of_nothing_takes_no_memory),
        CASE(files_that_become_shorter_are_read),
        CASE(noise_in_an_image_does_no_harm),
        CASE(the_end_of_a_recorder_stops_processes),
        CASE(who_prepared_writes_to_nothing_else),
        CASE(a_folder_that_another_process_prepared_stays_as_it_is),
    };
    int failed;

    if (!mkdtemp(folder))
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
