/* SPDX-License-Identifier: MIT */
/* Which images of a folder are read while processes still run, and what is
 * left of those that were taken away. */
#include "arch/clock.h"
#include "collect/store/spool.h"
#include <cpprof/recording.h>

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/cpprof-test-XXXXXX";

static size_t
n_files(bool remove_them)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        n += *entry->d_name != '.';
        if (remove_them)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return n;
}

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
    assert_int_equal(n_files(false), 8);
    recording = read_ended(10, 2);
    assert_int_equal(cpprof_recording_image_at(recording, 0)->n_samples, 5);
    cpprof_recording_remove(recording);
    assert_int_equal(n_files(false), 4);
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

static int
empty_folder(void **state)
{
    (void)state;
    n_files(true);
    return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, empty_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_over_is_taken_away_and_nothing_else),
        CASE(no_more_are_read_than_asked_for),
    };
    int failed;

    if (!mkdtemp(folder))
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
