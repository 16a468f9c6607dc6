/* SPDX-License-Identifier: MIT */
/* Marks of blocks, and the walk over glibc's chunks, on memory of this test. */
#include "collect/leak/glibc.h"
#include "collect/leak/marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* An area of blocks of 64 bytes, the i-th at memory + 8 * i. */
#define BLOCKS 4096
static uint64_t memory[BLOCKS * 8] __attribute__((aligned(4096)));
static struct cpprof__marks marks;

static uintptr_t
block(unsigned i)
{
    return (uintptr_t)&memory[8 * i];
}

static void
make(void)
{
    struct cpprof__area *area;
    unsigned i;

    memset(memory, 0, sizeof memory);
    cpprof__marks_make(&marks, 4);
    area = cpprof__marks_add_area(&marks, block(0), block(BLOCKS), 4);
    assert_non_null(area);
    for (i = 0; i < BLOCKS; i++)
        cpprof__marks_add_block(&marks, area, block(i));
    cpprof__marks_ready(&marks);
    assert_false(marks.failed);
}

static bool
is_marked(unsigned i)
{
    return cpprof__marks_is_marked(cpprof__marks_find(&marks, block(i)));
}

static bool
is_direct(unsigned i)
{
    return cpprof__marks_is_direct(cpprof__marks_find(&marks, block(i)));
}

static void
mark(uintptr_t word)
{
    const uint64_t root = word;

    cpprof__marks_from(&marks, &root, 1);
}

static void
a_root_marks_all_that_it_leads_to(void **state)
{
    unsigned i;

    (void)state;
    make();
    for (i = 0; i < BLOCKS / 2 - 1; i++)
        memory[8 * i + 3] = block(i + 1);
    mark(block(0));
    for (i = 0; i < BLOCKS; i++)
        assert_int_equal(is_marked(i), i < BLOCKS / 2);
}

static void
pointers_into_a_block_and_tagged_ones_count(void **state)
{
    (void)state;
    make();
    mark(block(1) + 63);
    mark(block(3) | UINT64_C(0xfff8) << 48);
    mark(block(5) - 1);
    assert_true(is_marked(1));
    assert_true(is_marked(3));
    assert_true(is_marked(4));
    assert_false(is_marked(5));
    assert_false(is_marked(2));
}

/* 0 and 1 touch each other; between 2 and 3 are 8 bytes. */
static void
the_end_of_a_block_leads_to_it_and_to_what_begins_there(void **state)
{
    struct cpprof__area *area;
    unsigned i;

    (void)state;
    memset(memory, 0, sizeof memory);
    cpprof__marks_make(&marks, 4);
    area = cpprof__marks_add_area(&marks, block(0), block(8), 3);
    for (i = 0; i < 8; i++)
        cpprof__marks_add_block(&marks, area, block(i));
    cpprof__marks_add_end(&marks, area, block(1));
    cpprof__marks_add_end(&marks, area, block(3) - 8);
    cpprof__marks_add_end(&marks, area, block(5) - 3);
    cpprof__marks_add_end(&marks, area, block(8));
    cpprof__marks_ready(&marks);
    memory[0] = block(5);
    mark(block(1));
    assert_true(is_marked(0));
    assert_true(is_marked(1));
    assert_true(is_marked(5));
    assert_false(is_marked(4));
    mark(block(3));
    assert_false(is_marked(2));
    assert_true(is_marked(3));
    mark(block(3) - 8);
    assert_true(is_marked(2));
}

static void
what_is_no_block_is_not_looked_into(void **state)
{
    struct cpprof__area *area;

    (void)state;
    memset(memory, 0, sizeof memory);
    cpprof__marks_make(&marks, 4);
    area = cpprof__marks_add_area(&marks, block(0), block(BLOCKS), 3);
    cpprof__marks_add_block(&marks, area, block(0));
    cpprof__marks_add_gap(area, block(1));
    cpprof__marks_add_block(&marks, area, block(9));
    cpprof__marks_ready(&marks);
    memory[8] = block(9);
    mark(block(1));
    assert_false(is_marked(9));
    mark(block(9) + 8);
    assert_true(is_marked(9));
    assert_null(cpprof__marks_find(&marks, block(2)).area);
}

/* 1 -> 2 -> 3; 4 -> 5 -> 6 -> 4, and 6 -> 7; 8 -> 8. */
static void
of_each_cycle_one_block_is_direct(void **state)
{
    unsigned i, n = 0;

    (void)state;
    make();
    for (i = 9; i < BLOCKS; i++)
        mark(block(i));
    mark(block(0));
    memory[8 * 1] = block(2);
    memory[8 * 2] = block(3);
    memory[8 * 4] = block(5);
    memory[8 * 5] = block(6);
    memory[8 * 6] = block(4);
    memory[8 * 6 + 1] = block(7);
    memory[8 * 8] = block(8);
    cpprof__marks_part(&marks);
    assert_true(is_direct(1));
    assert_false(is_direct(2));
    assert_false(is_direct(3));
    for (i = 4; i < 7; i++)
        n += is_direct(i);
    assert_int_equal(n, 1);
    assert_false(is_direct(7));
    assert_true(is_direct(8));
}

static void
a_block_is_found_behind_many_empty_words(void **state)
{
    struct cpprof__area *area;

    (void)state;
    memset(memory, 0, sizeof memory);
    cpprof__marks_make(&marks, 4);
    area = cpprof__marks_add_area(&marks, block(0), block(BLOCKS), 3);
    cpprof__marks_add_block(&marks, area, block(0));
    cpprof__marks_add_block(&marks, area, block(BLOCKS - 1));
    cpprof__marks_ready(&marks);
    memory[8 * (BLOCKS - 3)] = block(BLOCKS - 1);
    mark(block(BLOCKS - 2));
    assert_true(is_marked(0));
    assert_true(is_marked(BLOCKS - 1));
}

/* ---- chunks ------------------------------------------------------------ */

static struct cpprof__glibc_free_lists lists;

/* Sizes of 0x40, but the second is free, and the last is the top. */
static void
make_chunks(uint64_t last)
{
    memset(memory, 0, sizeof memory);
    memory[1] = 0x41;
    memory[9] = 0x41;
    memory[16] = 0x40;
    memory[17] = 0x40;
    memory[25] = last | 1;
}

static void
chunks_are_walked_to_the_end(void **state)
{
    uintptr_t first = 0, top = 0, end = block(10);

    (void)state;
    make_chunks(end - block(3));
    assert_true(cpprof__glibc_find(block(0), block(1), end, &first, &top));
    assert_int_equal(first, block(0));
    assert_int_equal(top, block(3));
    cpprof__marks_make(&marks, 4);
    cpprof__glibc_add(&marks, first, end, &lists);
    cpprof__marks_ready(&marks);
    assert_int_equal(marks.n_blocks, 2);
    memory[2] = block(2) + 16;
    mark(block(0) + 16);
    assert_true(
        cpprof__marks_is_marked(cpprof__marks_find(&marks, block(2) + 16)));
}

/* A thread's cache, three chunks of 0x40 bytes, which all seem to be in use,
 * and the top. The cache says that it has n of them, of which the second one
 * leads to the first one, which leads to none. */
#define CACHED(i)   (block(0) + 0x290 + 0x40 * (uintptr_t)(i) + 16)
#define OF_CACHE(i) (memory + (CACHED(i) - block(0)) / 8)

static void
make_cache(uint16_t n, bool is_protected)
{
    uintptr_t end = block(20);
    unsigned i;

    memset(memory, 0, sizeof memory);
    memset(&lists, 0, sizeof lists);
    memory[1] = 0x291;
    for (i = 0; i < 3; i++)
        OF_CACHE(i)[-1] = 0x41;
    OF_CACHE(3)[-1] = (end - CACHED(3) + 16) | 1;
    memory[2] = (uint64_t)n << 32; /* of the third bin */
    memory[2 + 16 + 2] = CACHED(1);
    OF_CACHE(1)[0] = CACHED(0) ^ (is_protected ? CACHED(1) >> 12 : 0);
    OF_CACHE(0)[0] = is_protected ? CACHED(0) >> 12 : 0;
    OF_CACHE(1)[3] = CACHED(2); /* a stale word */
    cpprof__marks_make(&marks, 4);
    cpprof__glibc_add(&marks, block(0), end, &lists);
    cpprof__marks_ready(&marks);
    cpprof__glibc_add_free(&marks, &lists);
    mark(CACHED(1));
}

static bool
is_reached(uintptr_t address)
{
    return cpprof__marks_is_marked(cpprof__marks_find(&marks, address));
}

static void
what_a_cache_holds_leads_nowhere(void **state)
{
    (void)state;
    make_cache(2, true);
    assert_int_equal(lists.n_caches, 1);
    assert_false(is_reached(CACHED(2)));
}

/* A pool of nodes that has the form of a cache. */
static void
a_list_of_the_programs_own_holds_blocks(void **state)
{
    (void)state;
    make_cache(2, false);
    assert_int_equal(lists.n_caches, 1);
    assert_true(is_reached(CACHED(2)));
}

static void
a_cache_that_is_being_changed_holds_blocks(void **state)
{
    (void)state;
    make_cache(3, true);
    assert_true(is_reached(CACHED(2)));
    make_cache(1, true);
    assert_true(is_reached(CACHED(2)));
    make_cache(0, true);
    assert_int_equal(lists.n_caches, 0);
    assert_true(is_reached(CACHED(2)));
}

static void
what_a_fastbin_holds_leads_nowhere(void **state)
{
    (void)state;
    make_cache(0, true);
    cpprof__marks_make(&marks, 4);
    cpprof__glibc_add(&marks, block(0), block(20), &lists);
    cpprof__marks_ready(&marks);
    memory[300 + 2] = CACHED(1) - 16;
    cpprof__glibc_note_arena(&lists, (uintptr_t)&memory[300 + 10]);
    cpprof__glibc_add_free(&marks, &lists);
    mark(CACHED(1));
    assert_false(is_reached(CACHED(2)));
}

static void
damaged_chunks_are_no_heap(void **state)
{
    uintptr_t first, top, end = block(10);

    (void)state;
    make_chunks(end - block(3) + 16);
    assert_false(cpprof__glibc_find(block(0), block(0), end, &first, &top));
    make_chunks(end - block(3));
    memory[16] = 0x30; /* not the size of the free chunk before */
    assert_false(cpprof__glibc_find(block(0), block(0), end, &first, &top));
    make_chunks(end - block(3));
    memory[9] = 0x49;
    assert_false(cpprof__glibc_find(block(0), block(0), end, &first, &top));
}

static void
a_chunk_of_its_own_mapping_has_all_of_it(void **state)
{
    (void)state;
    memset(memory, 0, sizeof memory);
    memory[1] = 8192 | 2;
    assert_int_equal(
        cpprof__glibc_mapped(block(0) + 16, block(0), block(BLOCKS)),
        block(0) + 8192);
    assert_int_equal(cpprof__glibc_mapped(block(0) + 16, block(0), block(8)),
                     0);
    memory[1] = 8192;
    assert_int_equal(
        cpprof__glibc_mapped(block(0) + 16, block(0), block(BLOCKS)), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_marks_all_that_it_leads_to),
        cmocka_unit_test(pointers_into_a_block_and_tagged_ones_count),
        cmocka_unit_test(
            the_end_of_a_block_leads_to_it_and_to_what_begins_there),
        cmocka_unit_test(what_is_no_block_is_not_looked_into),
        cmocka_unit_test(of_each_cycle_one_block_is_direct),
        cmocka_unit_test(a_block_is_found_behind_many_empty_words),
        cmocka_unit_test(chunks_are_walked_to_the_end),
        cmocka_unit_test(what_a_cache_holds_leads_nowhere),
        cmocka_unit_test(a_list_of_the_programs_own_holds_blocks),
        cmocka_unit_test(a_cache_that_is_being_changed_holds_blocks),
        cmocka_unit_test(what_a_fastbin_holds_leads_nowhere),
        cmocka_unit_test(damaged_chunks_are_no_heap),
        cmocka_unit_test(a_chunk_of_its_own_mapping_has_all_of_it),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
