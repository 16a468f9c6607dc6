/* SPDX-License-Identifier: MIT */
/*
 * Stores: counting, the bounds, and stores of other processes, hostile ones
 * too.
 */
#include "collect/store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static void *
make_block(void)
{
    void *block = mmap(NULL, cpprof__store_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_ptr_not_equal(block, MAP_FAILED);
    return block;
}

static void
free_block(void *block)
{
    munmap(block, cpprof__store_bytes());
}

/* A stack of n frames whose leaf is new for each k. */
static bool
add(struct cpprof__store *store, uint64_t k, size_t n, uint32_t labels)
{
    uint64_t pcs[64];
    uint32_t mappings[64];
    size_t i;

    for (i = 0; i < n; i++) {
        pcs[i] = 0x1000 + i;
        mappings[i] = CPPROF__NO_MAPPING;
    }
    pcs[0] = 0x100000 + k;
    return cpprof__store_add(store, pcs, mappings, n, labels, 1);
}

static void
same_stack_is_counted_once(void **state)
{
    void *block = make_block();
    struct cpprof__store store;

    (void)state;
    assert_true(cpprof__store_make(&store, block));
    assert_true(add(&store, 1, 10, 0));
    assert_true(add(&store, 1, 10, 0));
    assert_int_equal(store.head->n_samples, 1);
    assert_int_equal(store.samples[0].count, 2);
    assert_int_equal(store.head->n_nodes, 11);
    assert_int_equal(store.head->total, 2);
    free_block(block);
}

static void
stacks_share_their_callers(void **state)
{
    void *block = make_block();
    struct cpprof__store store;

    (void)state;
    assert_true(cpprof__store_make(&store, block));
    assert_true(add(&store, 1, 40, 0));
    assert_true(add(&store, 2, 40, 0));
    assert_int_equal(store.head->n_nodes, 1 + 40 + 1);
    assert_int_equal(store.head->n_samples, 2);
    free_block(block);
}

static void
other_labels_are_another_sample(void **state)
{
    void *block = make_block();
    struct cpprof__store store;
    uint32_t first, second;

    (void)state;
    assert_true(cpprof__store_make(&store, block));
    first = cpprof__store_add_labels(&store, "sk\0v", 5);
    second = cpprof__store_add_labels(&store, "sk\0w", 5);
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
    assert_true(add(&store, 1, 3, first));
    assert_true(add(&store, 1, 3, second));
    assert_true(add(&store, 1, 3, 0));
    assert_int_equal(store.head->n_samples, 3);
    free_block(block);
}

static void
full_store_refuses_and_keeps_what_it_has(void **state)
{
    void *block = make_block();
    struct cpprof__store store;
    uint64_t k = 0, i, sum = 0;

    (void)state;
    assert_true(cpprof__store_make(&store, block));
    while (add(&store, k, 8, 0))
        k++;
    assert_int_equal(k, CPPROF__STORE_SAMPLES);
    for (i = 0; i < store.head->n_samples; i++)
        sum += store.samples[i].count;
    assert_int_equal(sum, k);
    assert_int_equal(store.head->total, k);
    assert_true(add(&store, 5, 8, 0)); /* a known one still fits */
    free_block(block);
}

/*
 * A store that the profiled process had filled beyond the first sizes of its
 * indexes made the recorder hang: it rebuilt them by doubling an index that
 * was smaller than what there was to put in.
 */
static void
large_store_of_another_process_is_indexed(void **state)
{
    void *block = make_block();
    struct cpprof__store store, opened;
    uint64_t k;

    (void)state;
    assert_true(cpprof__store_make(&store, block));
    for (k = 0; k < 20000; k++)
        assert_true(add(&store, k, 8, 0));
    /* The indexes are not shared with other processes. */
    memset((char *)block + cpprof__store_shared_bytes(), 0,
           cpprof__store_bytes() - cpprof__store_shared_bytes());
    assert_true(cpprof__store_open(&opened, block));
    assert_true(cpprof__store_index(&opened));
    assert_true(add(&opened, 19999, 8, 0));
    assert_int_equal(opened.head->n_samples, 20000);
    assert_true(add(&opened, 20000, 8, 0));
    assert_int_equal(opened.head->n_samples, 20001);
    free_block(block);
}

static void
hostile_store_is_cut_to_what_can_be(void **state)
{
    void *block = make_block();
    struct cpprof__store store;
    uint32_t i;

    (void)state;
    assert_true(cpprof__store_make(&store, block));
    assert_true(add(&store, 1, 8, 0));
    store.head->n_nodes = UINT32_MAX;
    store.head->n_samples = UINT32_MAX;
    store.head->n_text = UINT32_MAX;
    store.head->n_mappings = 7;
    store.nodes[5].parent = 1000;
    store.samples[0].node = UINT32_MAX;
    store.samples[0].labels = 9;
    assert_true(cpprof__store_open(&store, block));
    assert_int_equal(store.head->n_nodes, CPPROF__STORE_NODES);
    for (i = 1; i < store.head->n_nodes; i++)
        assert_true(store.nodes[i].parent < i);
    assert_int_equal(store.samples[0].node, 0);
    assert_int_equal(store.samples[0].labels, 0);
    assert_string_equal(cpprof__store_text(&store, UINT32_MAX), "");
    free_block(block);
}

static void
memory_that_is_no_store_is_refused(void **state)
{
    void *block = make_block();
    struct cpprof__store store;

    (void)state;
    assert_false(cpprof__store_open(&store, block));
    free_block(block);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_stack_is_counted_once),
        cmocka_unit_test(stacks_share_their_callers),
        cmocka_unit_test(other_labels_are_another_sample),
        cmocka_unit_test(full_store_refuses_and_keeps_what_it_has),
        cmocka_unit_test(large_store_of_another_process_is_indexed),
        cmocka_unit_test(hostile_store_is_cut_to_what_can_be),
        cmocka_unit_test(memory_that_is_no_store_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
