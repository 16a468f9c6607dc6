/* SPDX-License-Identifier: MIT */
/* Where the table of script locations lies, and that a recorder finds in it
 * what a process had that was killed. Each case is a process of its own: the
 * table is the process's. */
#include "collect/store/script_file.h"

#include "collect/recording/recorded.h"
#include "collect/signal/heap/heap.h"
#include "collect/store/spool.h"
#include "collect/store/tables.h"
#include <cpprof/recording.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder_fixture.h"

#include "profile_walk.h"

static char folder[] = "/tmp/cpprof-test-XXXXXX";

/* What a child tells. */
static struct shared {
    uint64_t number, other_number;
    uint64_t pc, other_pc;
    uint32_t ok;
} * shared;

static uint64_t
add(const char *name, int64_t line)
{
    const struct cpprof__script_location location = {.mapping = "[lua]",
                                                     .name = name,
                                                     .file = "a.lua",
                                                     .line = line,
                                                     .has_name = true};

    return cpprof__scripts_add(&cpprof__scripts, &location);
}

/* How a process that runs f ends: as waitpid() has it. */
static int
run(void (*f)(void))
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (!pid) {
        f();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void
run_well(void (*f)(void))
{
    shared->ok = 0;
    assert_int_equal(run(f), 0);
    assert_int_equal(shared->ok, 1);
}

/* In the recorder. */
static void
check_location(uint64_t number, uint64_t pc, const char *name, int64_t line)
{
    struct cpprof__scripts scripts;
    struct cpprof__script_location location;

    assert_true(cpprof__script_file_read(&scripts, folder, number));
    assert_true(cpprof__scripts_read(&scripts, pc, &location));
    assert_string_equal(location.name, name);
    assert_int_equal(location.line, line);
    cpprof__script_file_free(&scripts);
    assert_null(scripts.head);
}

/* ---- private ---------------------------------------------------------- */

static void
make_in_private(void)
{
    struct cpprof__script_location location;
    uint64_t pc;

    if (!cpprof__script_file_make() || !cpprof__script_file_make())
        return;
    pc = add("f", 1);
    shared->ok = cpprof__scripts_read(&cpprof__scripts, pc, &location) &&
                 !strcmp(location.name, "f") && !cpprof__scripts.path;
}

static void
without_a_recorder_there_is_no_file(void **state)
{
    (void)state;
    run_well(make_in_private);
    assert_int_equal(folder_files(folder, false), 0);
}

static void
make_with_short_files(void)
{
    const struct rlimit limit = {1 << 20, 1 << 20};

    if (!setrlimit(RLIMIT_FSIZE, &limit) && cpprof__script_file_record(folder))
        make_in_private();
}

static void
process_that_may_not_write_so_much_keeps_a_private_table(void **state)
{
    (void)state;
    run_well(make_with_short_files);
    assert_int_equal(folder_files(folder, false), 0);
}

/* ---- in a file -------------------------------------------------------- */

static void
be_killed(void)
{
    shared->number = cpprof__script_file_record(folder);
    if (!cpprof__script_file_make())
        return;
    shared->pc = add("first", 1);
    add("first", 2);
    raise(SIGKILL);
}

static void
table_of_a_killed_process_is_found_by_its_number(void **state)
{
    struct cpprof__scripts scripts;

    (void)state;
    assert_true(WIFSIGNALED(run(be_killed)));
    assert_int_equal(folder_files(folder, false), 1);
    check_location(shared->number, shared->pc, "first", 1);
    assert_false(
        cpprof__script_file_read(&scripts, folder, shared->number + 2));
    assert_null(scripts.head);
    assert_false(cpprof__script_file_read(&scripts, folder, 0));
}

static void
add_in_child(void)
{
    shared->other_pc = add("of child", 7);
    shared->other_number = cpprof__script_file_record(folder);
}

static void
have_a_child(void)
{
    shared->number = cpprof__script_file_record(folder);
    if (!cpprof__script_file_make())
        return;
    shared->pc = add("of parent", 1);
    shared->ok = !run(add_in_child) && add("of child", 7) == shared->other_pc &&
                 shared->other_number == shared->number;
}

static void
forked_child_goes_on_with_the_table(void **state)
{
    (void)state;
    run_well(have_a_child);
    assert_int_equal(folder_files(folder, false), 1);
    check_location(shared->number, shared->pc, "of parent", 1);
    check_location(shared->number, shared->other_pc, "of child", 7);
}

static void
make_in_child(void)
{
    if (cpprof__script_file_make())
        add_in_child();
}

static void
make_after_a_child(void)
{
    shared->number = cpprof__script_file_record(folder);
    if (run(make_in_child) || !cpprof__script_file_make())
        return;
    shared->pc = add("of parent", 1);
    shared->ok = add("of child", 7) == shared->other_pc;
}

static void
parent_that_makes_it_later_joins_its_child(void **state)
{
    (void)state;
    run_well(make_after_a_child);
    assert_int_equal(folder_files(folder, false), 1);
    check_location(shared->number, shared->pc, "of parent", 1);
    check_location(shared->number, shared->other_pc, "of child", 7);
}

static void
fill(void)
{
    int64_t line = 0;

    shared->number = cpprof__script_file_record(folder);
    if (!cpprof__script_file_make())
        return;
    while (add("f", ++line) != CPPROF__SCRIPT_NO_ROOM)
        shared->pc = add("f", line);
    shared->other_pc = (uint64_t)line - 1;
    shared->ok = line > 100000;
}

static void
full_table_is_found_whole(void **state)
{
    (void)state;
    run_well(fill);
    check_location(shared->number, shared->pc, "f", (int64_t)shared->other_pc);
}

static void
something_else_under_the_name_is_no_table(void **state)
{
    struct cpprof__scripts scripts;
    char path[64];
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/scripts.0000000000000005", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("cpprofP1 and no more", file);
    fclose(file);
    assert_false(cpprof__script_file_read(&scripts, folder, 5));
    assert_null(scripts.head);
}

/* ---- recordings ------------------------------------------------------- */

static void
record_cpu(void)
{
    struct cpprof__spool spool;
    uint32_t mappings[] = {CPPROF__NO_MAPPING};
    uint64_t pc;

    if (cpprof__spool_make(&spool, folder, 1 << 14, NULL) != CPPROF_OK ||
        !cpprof__script_file_make())
        return;
    spool.head->state = CPPROF__SPOOL_RUNNING;
    spool.head->rate_hz = 100;
    spool.head->period_ns = 10000000;
    spool.head->start_ns = 1700000000000000000;
    strcpy(spool.head->engine, "timer");
    pc = add("hot", 12);
    cpprof__store_add(&spool.store, &pc, mappings, 1, 0, 5);
    shared->ok = 1;
    raise(SIGKILL);
}

static int
append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

static int
close_nothing(void *ctx, int failed)
{
    (void)ctx;
    return failed;
}

static void
check_profile(struct cpprof__buffer *bytes, const char *name, uint64_t line)
{
    struct walk *w = walk_profile(bytes->data, bytes->n);

    assert_int_equal(w->n_samples, 1);
    assert_int_equal(w->n_locations, 1);
    assert_int_equal(w->locations[0].address, 0);
    assert_int_equal(w->locations[0].n_lines, 1);
    assert_int_equal(w->locations[0].lines[0].line, line);
    assert_string_equal(walk_string(w, w->functions[0].name), name);
    assert_string_equal(walk_string(w, w->mappings[w->n_mappings - 1].path),
                        "[lua]");
    walk_free(w);
    cpprof__buffer_free(bytes);
}

static struct cpprof_recording *
open_folder(void)
{
    struct cpprof_recording *recording = NULL;
    struct cpprof_error error;

    if (cpprof_recording_read(folder, &recording, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    return recording;
}

static void
cpu_profile_of_a_killed_process_has_its_scripts(void **state)
{
    struct cpprof_recording *recording;
    struct cpprof__buffer bytes = {0};
    const struct cpprof_writer writer = {sizeof writer, append, close_nothing,
                                         &bytes};

    (void)state;
    shared->ok = 0;
    assert_true(WIFSIGNALED(run(record_cpu)));
    assert_int_equal(shared->ok, 1);
    recording = open_folder();
    assert_int_equal(cpprof_recording_image_count(recording), 1);
    assert_int_equal(cpprof_recording_image_at(recording, 0)->n_samples, 5);
    assert_int_equal(
        cpprof_recording_write_cpu(recording, 0, &writer, NULL, NULL),
        CPPROF_OK);
    cpprof_recording_free(recording);
    check_profile(&bytes, "hot", 12);
}

static void
put(FILE *file, enum cpprof__mirror_part part, size_t at, const void *data,
    size_t n)
{
    fseek(file, (long)(cpprof__recorded_offset(part) + at), SEEK_SET);
    assert_int_equal(fwrite(data, n, 1, file), 1);
}

/* One block, allocated at that location. */
static void
put_tables(const char *path, uint64_t number, uint64_t pc)
{
    const struct cpprof__mirror_head head = {
        .magic = CPPROF__MIRROR_MAGIC,
        .pid = 77,
        .state = CPPROF__MIRROR_RUNNING,
        .n_bytes = cpprof__recorded_offset(CPPROF__MIRROR_END),
        .scripts = number,
    };
    const struct cpprof__store_head store = {
        .magic = "cpprofS1", .n_nodes = 1, .n_text = 1};
    const struct cpprof__tree_head tree = {.n_nodes = 2};
    const struct cpprof__tree_node node = {.pc = pc};
    const struct cpprof__heap_bucket bucket = {
        .stack = 1,
        .alloc_objects = (uint64_t)1 << CPPROF__HEAP_FRACTION_BITS,
        .alloc_bytes = (uint64_t)100 << CPPROF__HEAP_FRACTION_BITS,
        .n_sampled = 1,
        .bytes_sampled = 100,
    };
    const struct cpprof__heap_head heap = {
        .rate = 1, .n_blocks = 1, .n_buckets = 2};
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    put(file, CPPROF__MIRROR_HEAD, 0, &head, sizeof head);
    put(file, CPPROF__MIRROR_STORE, 0, &store, sizeof store);
    put(file, CPPROF__MIRROR_TREE, 0, &tree, sizeof tree);
    put(file, CPPROF__MIRROR_NODES, sizeof node, &node, sizeof node);
    put(file, CPPROF__MIRROR_BUCKETS, sizeof bucket, &bucket, sizeof bucket);
    put(file, CPPROF__MIRROR_HEAP, 0, &heap, sizeof heap);
    assert_int_equal(ftruncate(fileno(file), (off_t)head.n_bytes), 0);
    fclose(file);
}

static void
heap_profile_of_a_killed_process_has_its_scripts(void **state)
{
    struct cpprof_recording *recording;
    struct cpprof__buffer bytes = {0};
    const struct cpprof_writer writer = {sizeof writer, append, close_nothing,
                                         &bytes};
    char path[64];

    (void)state;
    assert_true(WIFSIGNALED(run(be_killed)));
    snprintf(path, sizeof path, "%s/77.0.tables", folder);
    put_tables(path, shared->number, shared->pc);
    recording = open_folder();
    assert_int_equal(cpprof_recording_heap_count(recording), 1);
    assert_int_equal(
        cpprof_recording_write_heap(recording, 0, &writer, NULL, NULL),
        CPPROF_OK);
    cpprof_recording_free(recording);
    check_profile(&bytes, "first", 1);
}

static int
empty_folder(void **state)
{
    (void)state;
    folder_files(folder, true);
    memset(shared, 0, sizeof *shared);
    return 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, empty_folder, empty_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_a_recorder_there_is_no_file),
        CASE(process_that_may_not_write_so_much_keeps_a_private_table),
        CASE(table_of_a_killed_process_is_found_by_its_number),
        CASE(forked_child_goes_on_with_the_table),
        CASE(parent_that_makes_it_later_joins_its_child),
        CASE(full_table_is_found_whole),
        CASE(something_else_under_the_name_is_no_table),
        CASE(cpu_profile_of_a_killed_process_has_its_scripts),
        CASE(heap_profile_of_a_killed_process_has_its_scripts),
    };
    int failed;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !mkdtemp(folder))
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
