/* SPDX-License-Identifier: MIT */
/*
 * The table of ranges: who wins an address, against a slow search.
 */
#include "base/ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void
add(struct cpprof__ranges *ranges, uint64_t start, uint64_t limit,
    uint32_t value, uint32_t rank)
{
    cpprof__ranges_add(ranges,
                       (struct cpprof__range){start, limit, value, rank});
}

/* -1: nothing covers the address. */
static int64_t
value_at(const struct cpprof__ranges *ranges, uint64_t address)
{
    const struct cpprof__range *range = cpprof__ranges_find(ranges, address);

    return range ? (int64_t)range->value : -1;
}

static void
empty_table_finds_nothing(void **state)
{
    struct cpprof__ranges ranges = {0};

    assert_true(cpprof__ranges_seal(&ranges));
    assert_int_equal(value_at(&ranges, 0), -1);
    assert_null(cpprof__ranges_above(&ranges, 0));
    cpprof__ranges_free(&ranges);
}

static void
limit_is_outside_and_empty_ranges_are_left_out(void **state)
{
    struct cpprof__ranges ranges = {0};

    add(&ranges, 20, 30, 2, 0);
    add(&ranges, 10, 20, 1, 0);
    add(&ranges, 40, 40, 3, 0);
    add(&ranges, 50, 45, 4, 0);
    assert_true(cpprof__ranges_seal(&ranges));
    assert_int_equal(ranges.n, 2);
    assert_int_equal(value_at(&ranges, 9), -1);
    assert_int_equal(value_at(&ranges, 10), 1);
    assert_int_equal(value_at(&ranges, 19), 1);
    assert_int_equal(value_at(&ranges, 20), 2);
    assert_int_equal(value_at(&ranges, 30), -1);
    assert_int_equal(cpprof__ranges_above(&ranges, 10)->start, 20);
    assert_null(cpprof__ranges_above(&ranges, 20));
    cpprof__ranges_free(&ranges);
}

static void
highest_rank_wins_then_nearest_start_then_lowest_value(void **state)
{
    struct cpprof__ranges ranges = {0};

    add(&ranges, 0, 100, 0, 0);
    add(&ranges, 10, 50, 1, 0); /* nearer than 0 */
    add(&ranges, 10, 60, 2, 0); /* a higher value than 1 */
    add(&ranges, 20, 30, 3, 1); /* a higher rank */
    add(&ranges, 25, 45, 4, 0); /* a lower rank than 3 */
    assert_true(cpprof__ranges_seal(&ranges));
    assert_int_equal(value_at(&ranges, 9), 0);
    assert_int_equal(value_at(&ranges, 10), 1);
    assert_int_equal(value_at(&ranges, 19), 1);
    assert_int_equal(value_at(&ranges, 29), 3);
    assert_int_equal(value_at(&ranges, 30), 4);
    assert_int_equal(value_at(&ranges, 45), 1);
    assert_int_equal(value_at(&ranges, 55), 2);
    assert_int_equal(value_at(&ranges, 60), 0);
    assert_int_equal(value_at(&ranges, 99), 0);
    cpprof__ranges_free(&ranges);
}

static void
ends_of_the_address_space_are_covered(void **state)
{
    struct cpprof__ranges ranges = {0};

    add(&ranges, 0, UINT64_MAX, 1, 0);
    add(&ranges, UINT64_MAX - 1, UINT64_MAX, 2, 0);
    assert_true(cpprof__ranges_seal(&ranges));
    assert_int_equal(value_at(&ranges, 0), 1);
    assert_int_equal(value_at(&ranges, UINT64_MAX - 1), 2);
    assert_int_equal(value_at(&ranges, UINT64_MAX), -1);
    cpprof__ranges_free(&ranges);
}

/* The rules by trying every range, in the order that they say. */
static int64_t
slow_value_at(const struct cpprof__range *items, size_t n, uint64_t address)
{
    const struct cpprof__range *best = NULL;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct cpprof__range *r = &items[i];

        if (address < r->start || address >= r->limit)
            continue;
        if (!best || r->rank > best->rank ||
            (r->rank == best->rank &&
             (r->start > best->start ||
              (r->start == best->start && r->value < best->value))))
            best = r;
    }
    return best ? (int64_t)best->value : -1;
}

static void
random_tables_agree_with_a_slow_search(void **state)
{
    unsigned round;

    srand(1);
    for (round = 0; round < 2000; round++) {
        struct cpprof__ranges ranges = {0};
        struct cpprof__range items[24];
        size_t n = (size_t)rand() % 24;
        uint64_t address;
        size_t i;

        for (i = 0; i < n; i++) {
            items[i].start = (uint64_t)rand() % 64;
            items[i].limit = items[i].start + (uint64_t)rand() % 32;
            items[i].value = (uint32_t)i;
            items[i].rank = (uint32_t)rand() % 3;
            cpprof__ranges_add(&ranges, items[i]);
        }
        assert_true(cpprof__ranges_seal(&ranges));
        for (address = 0; address < 100; address++)
            assert_int_equal(value_at(&ranges, address),
                             slow_value_at(items, n, address));
        for (i = 1; i < ranges.n; i++)
            assert_true(ranges.items[i - 1].limit <= ranges.items[i].start);
        cpprof__ranges_free(&ranges);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_table_finds_nothing),
        cmocka_unit_test(limit_is_outside_and_empty_ranges_are_left_out),
        cmocka_unit_test(
            highest_rank_wins_then_nearest_start_then_lowest_value),
        cmocka_unit_test(ends_of_the_address_space_are_covered),
        cmocka_unit_test(random_tables_agree_with_a_slow_search),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
