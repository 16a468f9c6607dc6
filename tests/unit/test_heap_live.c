/* SPDX-License-Identifier: MIT */
/* The table of live blocks: found exactly by address and heap, put back, full,
 * crowded, and no larger than promised. */
#include "collect/signal/heap/heap_live.h"

#include "heap_core_fixture.h"

static void
only_what_was_sampled_is_removed_and_only_once(void **state)
{
    (void)state;
    fresh_heap(1);
    allocated(0x100000, 10);
    assert_false(freed(0x100010));
    assert_false(cpprof__heap_remove((void *)0x100008, 0, NULL));
    assert_false(cpprof__heap_remove(NULL, 0, NULL));
    assert_true(freed(0x100000));
    assert_false(freed(0x100000));
    assert_false(cpprof__heap_remove((void *)0x100000, 0, NULL));
}

static void
heaps_do_not_see_each_others_blocks(void **state)
{
    void *p = (void *)0x100000;

    (void)state;
    fresh_heap(1);
    assert_true(cpprof__heap_due(10));
    cpprof__heap_sample(p, 10, 0);
    assert_true(cpprof__heap_due(20));
    cpprof__heap_sample(p, 20, 63);
    assert_true(cpprof__heap_due(30));
    cpprof__heap_sample(p, 30, 64);
    assert_int_equal(in_use(&cpprof__heap).n_sampled, 2);
    assert_false(cpprof__heap_remove(p, 1, NULL));
    assert_true(cpprof__heap_remove(p, 63, NULL));
    assert_int_equal(in_use(&cpprof__heap).bytes_sampled, 10);
    assert_true(cpprof__heap_remove(p, 0, NULL));
    assert_int_equal(in_use(&cpprof__heap).n_sampled, 0);
}

static void
restored_block_is_what_it_was(void **state)
{
    struct cpprof__heap_removed removed;
    struct cpprof__heap_sum before, after;

    (void)state;
    fresh_heap(4096);
    allocated(0x100000, 100000);
    before = in_use(&cpprof__heap);
    assert_int_equal(before.n_sampled, 1);
    assert_true(cpprof__heap_remove((void *)0x100000, 0, &removed));
    cpprof__heap_restore(&removed);
    after = in_use(&cpprof__heap);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ever_allocated(&cpprof__heap).n_sampled, 1);
    assert_true(freed(0x100000));
    assert_false(cpprof__heap_remove((void *)0x100000, 0, &removed));
    cpprof__heap_restore(&removed);
    assert_int_equal(in_use(&cpprof__heap).n_sampled, 0);
}

static void
block_freed_behind_our_back_is_replaced(void **state)
{
    (void)state;
    fresh_heap(1);
    allocated(0x100000, 10);
    allocated(0x100000, 20);
    assert_int_equal(in_use(&cpprof__heap).bytes_sampled, 20);
    assert_true(freed(0x100000));
    assert_false(freed(0x100000));
}

static void
filter_that_is_full_at_a_place_still_tells_the_truth(void **state)
{
    const uintptr_t turn = (uintptr_t)CPPROF__HEAP_FILTER << 10;
    uintptr_t i;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < 600; i++)
        allocated(0x100000 + i * turn, 10);
    for (i = 0; i < 600; i++)
        assert_true(freed(0x100000 + i * turn));
    for (i = 0; i < 600; i++)
        assert_false(freed(0x100000 + i * turn));
    /* Elsewhere it counts back to nothing. */
    for (i = 0; i < 200; i++)
        allocated(0x200000 + i * turn, 10);
    for (i = 0; i < 200; i++)
        assert_true(freed(0x200000 + i * turn));
    assert_false(cpprof__heap_may_be_sampled((void *)0x200000));
}

static struct cpprof__heap_block
block_at(uintptr_t address)
{
    return (struct cpprof__heap_block){address, 48, FRACTION, 1, 0};
}

/* Addresses at one distance from each other, however large it is. */
static void
fill(uintptr_t first, uintptr_t stride, uint32_t n)
{
    struct cpprof__heap_block block;
    uint32_t i;

    for (i = 0; i < n; i++) {
        block = block_at(first + i * stride);
        if (!cpprof__live_add(&cpprof__heap, &block))
            fail_msg("stride %#lx: no room for the %u-th",
                     (unsigned long)stride, i);
    }
    for (i = 0; i < n; i++)
        if (!cpprof__live_has(&cpprof__heap, first + i * stride, 0))
            fail_msg("stride %#lx: the %u-th is not found",
                     (unsigned long)stride, i);
    for (i = 0; i < n; i++)
        if (!cpprof__live_remove(&cpprof__heap, first + i * stride, 0, &block))
            fail_msg("stride %#lx: the %u-th is not removed",
                     (unsigned long)stride, i);
}

static void
no_stride_makes_all_blocks_meet(void **state)
{
    unsigned shift;

    (void)state;
    for (shift = 3; shift < 40; shift += 3) {
        fresh_heap(1);
        fill(0x10000010, (uintptr_t)1 << shift, 100000);
    }
}

static void
full_table_says_so_and_works_again_when_blocks_are_freed(void **state)
{
    const uintptr_t first = 0x10000000;
    struct cpprof__heap_block block;
    uint32_t i, n = 0;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < CPPROF__HEAP_LIVE + 10; i++) {
        block = block_at(first + (uintptr_t)i * 64);
        n += cpprof__live_add(&cpprof__heap, &block);
    }
    assert_int_equal(n, CPPROF__HEAP_LIVE - 1);
    assert_int_equal(cpprof__heap_n_blocks(&cpprof__heap), CPPROF__HEAP_LIVE);
    allocated(0x1000, 10);
    assert_int_equal(cpprof__heap.head->n_unfollowed, 1);
    assert_int_equal(ever_allocated(&cpprof__heap).n_sampled, 1);
    assert_false(freed(0x1000));
    assert_true(cpprof__live_remove(&cpprof__heap, first + 64, 0, &block));
    block = block_at(0x2000);
    assert_true(cpprof__live_add(&cpprof__heap, &block));
    assert_true(cpprof__live_has(&cpprof__heap, 0x2000, 0));
    assert_true(cpprof__live_has(&cpprof__heap, first + 128, 0));
    assert_false(cpprof__live_has(&cpprof__heap, first + 64, 0));
}

static size_t
resident(void *p, size_t n)
{
    size_t n_pages = n / 4096, i, sum = 0;
    unsigned char *in = malloc(n_pages);

    assert_non_null(in);
    assert_int_equal(mincore(p, n_pages * 4096, in), 0);
    for (i = 0; i < n_pages; i++)
        sum += in[i] & 1;
    free(in);
    return sum * 4096;
}

/* Entry, index and filter of what a program with 48-byte blocks has. */
static void
million_live_blocks_need_at_most_64_bytes_each(void **state)
{
    const uint32_t n = 1000000;
    struct cpprof__heap_block block;
    size_t bytes;
    uint32_t i;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < n; i++) {
        block = block_at(0x10000000 + (uintptr_t)i * 64);
        assert_true(cpprof__live_add(&cpprof__heap, &block));
    }
    bytes = resident(heap_memory[2], heap_memory_bytes[2]) +
            resident(heap_memory[3], heap_memory_bytes[3]);
    print_message("# %.1f bytes\n", (double)bytes / n);
    assert_true(bytes <= 64 * (size_t)n);
}

static void
few_live_blocks_need_little(void **state)
{
    uintptr_t i;
    size_t bytes;

    (void)state;
    fresh_heap(1);
    /* 200 blocks: 100 MiB in use at the default rate. */
    for (i = 0; i < 200; i++) {
        struct cpprof__heap_block block = block_at(0x10000010 + (i << 19));

        assert_true(cpprof__live_add(&cpprof__heap, &block));
    }
    bytes = resident(heap_memory[2], heap_memory_bytes[2]) +
            resident(heap_memory[3], heap_memory_bytes[3]);
    print_message("# %zu bytes\n", bytes);
    assert_true(bytes <= 400 << 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_sampled_is_removed_and_only_once),
        cmocka_unit_test(heaps_do_not_see_each_others_blocks),
        cmocka_unit_test(restored_block_is_what_it_was),
        cmocka_unit_test(block_freed_behind_our_back_is_replaced),
        cmocka_unit_test(filter_that_is_full_at_a_place_still_tells_the_truth),
        cmocka_unit_test(no_stride_makes_all_blocks_meet),
        cmocka_unit_test(
            full_table_says_so_and_works_again_when_blocks_are_freed),
        cmocka_unit_test(million_live_blocks_need_at_most_64_bytes_each),
        cmocka_unit_test(few_live_blocks_need_little),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
