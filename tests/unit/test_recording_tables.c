/* SPDX-License-Identifier: MIT */
/* What the recorder makes of files that a process left behind. */
#include "collect/recording/recorded.h"
#include "collect/recording/recording_tables.h"
#include "collect/signal/heap/heap.h"
#include "collect/store/tables.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/cpprof-recording-XXXXXX";
static uint64_t seed = 1;

static uint64_t
draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 16;
}

static int
create(const char *name)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void
put(int fd, enum cpprof__mirror_part part, size_t at, const void *data,
    size_t n)
{
    assert_int_equal(
        pwrite(fd, data, n, (off_t)(cpprof__recorded_offset(part) + at)), n);
}

static struct cpprof__mirror_head
good_head(void)
{
    struct cpprof__mirror_head head = {
        .magic = CPPROF__MIRROR_MAGIC,
        .pid = 77,
        .state = CPPROF__MIRROR_RUNNING,
        .n_bytes = cpprof__recorded_offset(CPPROF__MIRROR_END),
        .name = "victim",
    };

    return head;
}

static void
put_store(int fd)
{
    const struct cpprof__store_head store = {
        .magic = "cpprofS1", .n_nodes = 1, .n_text = 1};

    put(fd, CPPROF__MIRROR_STORE, 0, &store, sizeof store);
}

/* A node, a bucket of two blocks of 100 bytes each, one of which is live. */
static void
put_heap(int fd)
{
    const struct cpprof__tree_head tree = {.n_nodes = 2};
    const struct cpprof__tree_node node = {.pc = 0x1000};
    const uint64_t one = (uint64_t)1 << CPPROF__HEAP_FRACTION_BITS;
    const struct cpprof__heap_bucket bucket = {
        .stack = 1,
        .alloc_objects = 2 * one,
        .alloc_bytes = 200 * one,
        .n_sampled = 2,
        .bytes_sampled = 200,
    };
    const struct cpprof__heap_block block = {
        .address = 0x5000, .bytes = 100, .weight = one, .bucket = 1};
    const struct cpprof__heap_head heap = {
        .rate = 1, .n_blocks = 2, .n_buckets = 2};

    put(fd, CPPROF__MIRROR_TREE, 0, &tree, sizeof tree);
    put(fd, CPPROF__MIRROR_NODES, sizeof node, &node, sizeof node);
    put(fd, CPPROF__MIRROR_BUCKETS, sizeof bucket, &bucket, sizeof bucket);
    put(fd, CPPROF__MIRROR_BLOCKS, sizeof block, &block, sizeof block);
    put(fd, CPPROF__MIRROR_HEAP, 0, &heap, sizeof heap);
}

static int
create_good(const char *name)
{
    struct cpprof__mirror_head head = good_head();
    int fd = create(name);

    put(fd, CPPROF__MIRROR_HEAD, 0, &head, sizeof head);
    put_store(fd);
    put_heap(fd);
    assert_int_equal(ftruncate(fd, (off_t)head.n_bytes), 0);
    return fd;
}

static struct cpprof_recording *
open_folder(void)
{
    struct cpprof_recording *recording = NULL;
    struct cpprof_error error;

    assert_int_equal(cpprof_recording_read(folder, &recording, &error),
                     CPPROF_OK);
    return recording;
}

static void
remove_file(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static int
swallow(void *ctx, const void *data, size_t n)
{
    (void)data;
    *(size_t *)ctx += n;
    return 0;
}

static enum cpprof_status
write_heap(struct cpprof_recording *recording, size_t *n)
{
    const struct cpprof_heap_options options = {
        .size = sizeof options, .symbolize = CPPROF_SYMBOLIZE_NONE};
    struct cpprof_error error;

    return cpprof_recording_write_heap(
        recording, 0,
        &(struct cpprof_writer){sizeof(struct cpprof_writer), swallow, NULL, n},
        &options, &error);
}

static void
heap_of_a_dead_process_is_read(void **state)
{
    const struct cpprof_recorded_heap *heap;
    struct cpprof_recording *recording;
    size_t n = 0;

    (void)state;
    close(create_good("77.0.tables"));
    recording = open_folder();
    assert_int_equal(cpprof_recording_heap_count(recording), 1);
    heap = cpprof_recording_heap_at(recording, 0);
    assert_int_equal(heap->pid, 77);
    assert_string_equal(heap->name, "victim");
    assert_null(heap->owner);
    assert_int_equal(heap->n_samples, 2);
    assert_int_equal(heap->alloc_bytes, 200);
    assert_int_equal(heap->inuse_objects, 1);
    assert_int_equal(heap->inuse_bytes, 100);
    assert_int_equal(heap->n_lost, 0);
    assert_null(cpprof_recording_heap_at(recording, 1));
    assert_int_equal(write_heap(recording, &n), CPPROF_OK);
    assert_true(n > 0);
    cpprof_recording_free(recording);
    remove_file("77.0.tables");
}

static void
no_recording_is_passed_over(void **state)
{
    struct cpprof__mirror_head head = good_head();
    struct cpprof_recording *recording;
    int fd;

    (void)state;
    close(create("1.0.tables")); /* empty */
    fd = create("2.0.tables");   /* made by another version */
    head.n_bytes++;
    put(fd, CPPROF__MIRROR_HEAD, 0, &head, sizeof head);
    put_store(fd);
    close(fd);
    fd = create("3.0.tables"); /* a name without end */
    head = good_head();
    memset(head.name, 'x', sizeof head.name);
    put(fd, CPPROF__MIRROR_HEAD, 0, &head, sizeof head);
    put_store(fd);
    close(fd);
    fd = create("4.0.tables"); /* no store yet */
    head = good_head();
    put(fd, CPPROF__MIRROR_HEAD, 0, &head, sizeof head);
    close(fd);
    recording = open_folder();
    assert_int_equal(cpprof_recording_heap_count(recording), 0);
    assert_int_equal(write_heap(recording, &(size_t){0}), CPPROF_INVALID);
    cpprof_recording_free(recording);
    remove_file("1.0.tables");
    remove_file("2.0.tables");
    remove_file("3.0.tables");
    remove_file("4.0.tables");
}

/* Anything may stand in the tables, and more than half of it small numbers,
 * which get further than others. */
static void
put_noise(int fd, enum cpprof__mirror_part part)
{
    uint64_t words[512];
    size_t i;

    for (i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = draw() % 3 ? draw() % 70 : draw() << draw() % 48;
    put(fd, part, 0, words,
        part == CPPROF__MIRROR_TREE ? sizeof(struct cpprof__tree_head)
                                    : sizeof words);
}

static void
noise_does_no_harm(void **state)
{
    int round, part;

    (void)state;
    for (round = 0; round < 60; round++) {
        int fd = create_good("77.0.tables");
        struct cpprof_recording *recording;
        size_t n = 0;

        for (part = CPPROF__MIRROR_STORE; part < CPPROF__MIRROR_END; part++)
            if (draw() % 2)
                put_noise(fd, (enum cpprof__mirror_part)part);
        if (draw() % 2)
            put_store(fd);
        close(fd);
        recording = open_folder();
        if (cpprof_recording_heap_count(recording))
            assert_int_equal(write_heap(recording, &n), CPPROF_OK);
        cpprof_recording_free(recording);
    }
    remove_file("77.0.tables");
}

static int
set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int
tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_of_a_dead_process_is_read),
        cmocka_unit_test(no_recording_is_passed_over),
        cmocka_unit_test(noise_does_no_harm),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
