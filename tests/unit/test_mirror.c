/* SPDX-License-Identifier: MIT */
/*
 * The copy of the tables in a recorder's file: complete, up to date, and apart
 * in a forked child.
 */
#include "collect/signal/tables/mirror.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TABLE_BYTES (1u << 20)
#define TABLE_AT    4096u
#define ENTRIES     64u

/* A table whose entries are like blocks: the first word says if one is there.
 */
static struct entry {
    uint64_t address;
    uint64_t value[7];
} * table;
static uint32_t n_used, stop;
static char folder[] = "/dev/shm/cpprof-test-XXXXXX";

static void
path_of(char *path, int32_t pid)
{
    cpprof__mirror_path(path, folder, pid, 0);
}

/* What the file of a process holds for an entry. */
static struct entry
in_file(int32_t pid, unsigned number)
{
    struct entry entry = {0};
    char path[PATH_MAX + 32];
    int fd;

    path_of(path, pid);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &entry, sizeof entry,
                           TABLE_AT + (off_t)(number * sizeof entry)),
                     sizeof entry);
    close(fd);
    return entry;
}

static void
set(unsigned number, uint64_t value)
{
    table[number].address = value;
    table[number].value[6] = value * 3;
    cpprof__mirror(&table[number], sizeof table[number]);
}

static int
set_up(void **state)
{
    struct cpprof__mirror *plan = &cpprof__mirror_plan;

    (void)state;
    if (access("/dev/shm", W_OK))
        strcpy(folder, "/tmp/cpprof-mirror-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    n_used = ENTRIES;
    strcpy(plan->directory, folder);
    strcpy(plan->name, "name");
    plan->n_bytes = TABLE_AT + TABLE_BYTES;
    plan->first_pid = (int32_t)getpid();
    plan->control = &stop;
    plan->areas[0] = (struct cpprof__mirror_area){
        .from = (char *)table,
        .n_bytes = TABLE_BYTES,
        .n_used = &n_used,
        .each = sizeof *table,
        .part = CPPROF__MIRROR_BLOCKS,
        .offset = TABLE_AT,
    };
    plan->n_areas = 1;
    return cpprof__mirror_start() ? 0 : -1;
}

static int
tear_down(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void
what_was_there_before_is_copied(void **state)
{
    struct cpprof__mirror_head *head;
    struct stat st;
    char path[PATH_MAX + 32];

    (void)state;
    set(3, 33); /* nobody records yet */
    assert_null(cpprof__mirror_head());
    assert_int_equal(cpprof__mirror_make(), 0);
    cpprof__mirror_plan.wanted = true;
    head = cpprof__mirror_head();
    assert_non_null(head);
    assert_memory_equal(head->magic, CPPROF__MIRROR_MAGIC, 8);
    assert_int_equal(head->pid, getpid());
    assert_int_equal(head->is_forked, 0);
    assert_string_equal(head->name, "name");
    assert_int_equal(in_file(head->pid, 3).address, 33);
    assert_int_equal(in_file(head->pid, 3).value[6], 99);
    path_of(path, head->pid);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks * 512 < TABLE_BYTES / 8); /* holes are holes */
}

static void
what_changes_is_copied(void **state)
{
    int32_t pid = (int32_t)getpid();

    (void)state;
    set(3, 44);
    assert_int_equal(in_file(pid, 3).address, 44);
    assert_int_equal(in_file(pid, 3).value[6], 132);
    table[4].value[0] = 5; /* not said */
    assert_int_equal(in_file(pid, 4).value[0], 0);
    cpprof__mirror_all();
    assert_int_equal(in_file(pid, 4).value[0], 5);
    set(TABLE_BYTES / sizeof *table - 1, 7);
    assert_int_equal(in_file(pid, TABLE_BYTES / sizeof *table - 1).address, 7);
    cpprof__mirror(&stop, 8); /* in no area */
    assert_int_equal(cpprof__mirror_head()->n_refused, 0);
}

/* Waits for a child, whose status has to be 0. */
static void
reap(pid_t child)
{
    int status = -1;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void
child_makes_a_file_of_its_own_at_its_first_block(void **state)
{
    char path[PATH_MAX + 32];
    pid_t child = fork();

    (void)state;
    if (!child) {
        set(3, 0); /* given back: no reason */
        if (cpprof__mirror_head())
            _exit(1);
        set(5, 55);
        _exit(!cpprof__mirror_head() || !cpprof__mirror_head()->is_forked);
    }
    reap(child);
    assert_int_equal(in_file(child, 3).address, 0);
    assert_int_equal(in_file(child, 5).address, 55);
    assert_int_equal(in_file((int32_t)getpid(), 3).address, 44);
    assert_int_equal(in_file((int32_t)getpid(), 5).address, 0);
    child = fork();
    if (!child) {
        set(3, 0);
        _exit(0);
    }
    reap(child);
    path_of(path, child);
    assert_int_not_equal(access(path, F_OK), 0);
}

#define THREADS 4
#define ROUNDS  20000

static void *
count_up(void *unused)
{
    int i;

    for (i = 0; i < ROUNDS; i++) {
        add_relaxed(&table[8].value[i % 7], 1u);
        cpprof__mirror(&table[8], sizeof table[8]);
    }
    return unused;
}

static void
last_state_stays_whoever_comes_last(void **state)
{
    pthread_t threads[THREADS];
    struct entry entry;
    uint64_t sum = 0;
    int i;

    (void)state;
    for (i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    entry = in_file((int32_t)getpid(), 8);
    for (i = 0; i < 7; i++)
        sum += entry.value[i];
    assert_int_equal(sum, THREADS * ROUNDS);
}

static uint32_t has_enough;

static void *
change_always(void *unused)
{
    while (!load_relaxed(&has_enough))
        add_relaxed(&table[9].value[0], 1u);
    return unused;
}

static void
copying_ends_while_others_change_it(void **state)
{
    pthread_t threads[THREADS];
    int i;

    (void)state;
    for (i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_always, NULL),
                         0);
    for (i = 0; i < 1000; i++)
        cpprof__mirror(&table[9], sizeof table[9]);
    store_relaxed(&has_enough, 1u);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cpprof__mirror(&table[9], sizeof table[9]);
    assert_int_equal(in_file((int32_t)getpid(), 9).value[0], table[9].value[0]);
}

/* Who stops the profiles knows by `wanted` that there are some. */
static void
stop_ends_it(void **state)
{
    (void)state;
    stop = 1;
    set(3, 66);
    assert_int_equal(in_file((int32_t)getpid(), 3).address, 44);
    assert_true(cpprof__mirror_plan.wanted);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_there_before_is_copied),
        cmocka_unit_test(what_changes_is_copied),
        cmocka_unit_test(child_makes_a_file_of_its_own_at_its_first_block),
        cmocka_unit_test(last_state_stays_whoever_comes_last),
        cmocka_unit_test(copying_ends_while_others_change_it),
        cmocka_unit_test(stop_ends_it),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
