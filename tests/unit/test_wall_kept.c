/* SPDX-License-Identifier: MIT */
/* What a wall profile keeps for a recorder, and what a recorder makes of it. */
#include "collect/wall/wall_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cpprof__wall_summary kept_summary = {
    .options = {.rate_hz = 250, .flags = CPPROF_FLAG_FGPROF},
    .time_ns = 1700000000000000000,
    .duration_ns = 5000,
    .n_threads = 3,
    .n_looks = 9,
    .n_asked = 4,
};

static struct cpprof__wall_kept copy;

static void
add(struct cpprof__wall_counts *counts, uint32_t stack, uint32_t labels,
    enum cpprof__wall_state state, int64_t ns)
{
    const struct cpprof__wall_count key = {
        .stack = stack, .labels = labels, .state = state};

    cpprof__wall_add(counts, &key, ns);
}

/* Three records, of which one grew after the others came. */
static void
keep_three(void)
{
    struct cpprof__wall_counts counts = {0};

    cpprof__wall_keep_begin(&counts);
    cpprof__wall_keep_summary(&kept_summary);
    add(&counts, 7, 0, CPPROF__WALL_SLEEPING, 100);
    add(&counts, 7, 2, CPPROF__WALL_SLEEPING, 10);
    add(&counts, 7, 0, CPPROF__WALL_RUNNING, 1);
    add(&counts, 7, 0, CPPROF__WALL_SLEEPING, 1000);
    cpprof__wall_counts_free(&counts);
    copy = *cpprof__wall_kept;
}

static int64_t
total_ns(const struct cpprof__wall_counts *counts)
{
    int64_t sum = 0;
    uint32_t i;

    for (i = 0; i < counts->n_slots; i++)
        sum += counts->slots[i].n ? counts->slots[i].ns : 0;
    return sum;
}

static void
records_are_kept_as_they_are_counted(void **state)
{
    struct cpprof__wall_summary summary = {0};
    struct cpprof__wall_counts counts;

    (void)state;
    keep_three();
    assert_true(cpprof__wall_kept_open(&copy, &counts, &summary));
    assert_int_equal(counts.n_slots, 3);
    assert_int_equal(counts.slots[0].n, 2);
    assert_int_equal(counts.slots[0].ns, 1100);
    assert_int_equal(counts.slots[1].labels, 2);
    assert_int_equal(counts.slots[2].state, CPPROF__WALL_RUNNING);
    assert_int_equal(summary.options.rate_hz, 250);
    assert_int_equal(summary.options.flags, CPPROF_FLAG_FGPROF);
    assert_int_equal(summary.duration_ns, 5000);
    assert_int_equal(summary.n_asked, 4);
}

static void
records_that_are_not_wanted_are_left_out(void **state)
{
    struct cpprof__wall_summary summary = {0};
    struct cpprof__wall_counts counts;

    (void)state;
    keep_three();
    copy.head.flags = CPPROF_FLAG_OFF_CPU | CPPROF_FLAG_NO_LABELS;
    assert_true(cpprof__wall_kept_open(&copy, &counts, &summary));
    assert_int_equal(total_ns(&counts), 1110);
    assert_int_equal(counts.slots[1].labels, 0);
    assert_int_equal(counts.slots[2].n, 0);
}

/* Counts begin anew now and then: whoever counts adds what it has since. */
static void
counts_that_began_anew_add_up(void **state)
{
    struct cpprof__wall_counts counts = {0}, since = {0};
    struct cpprof__wall_base base;
    uint32_t i, round;

    (void)state;
    cpprof__wall_add(&counts, &(struct cpprof__wall_count){.stack = 7}, 5);
    assert_true(cpprof__wall_base_take(&base, &counts));
    for (round = 0; round < 3; round++) {
        for (i = 0; !cpprof__wall_counts_are_full(&counts); i++)
            cpprof__wall_add(
                &counts, &(struct cpprof__wall_count){.stack = 7, .labels = i},
                10);
        assert_true(cpprof__wall_counts_since(&counts, &base, 0, &since));
        cpprof__wall_base_free(&base);
        cpprof__wall_counts_free(&counts);
    }
    assert_int_equal(since.n, CPPROF__WALL_RECORDS / 2);
    assert_int_equal(total_ns(&since), 30 * (CPPROF__WALL_RECORDS / 2));
    cpprof__wall_counts_free(&since);
}

/* Two captures on the counts of one ticker, with other flags. */
static void
counts_since_a_moment_are_what_was_added(void **state)
{
    struct cpprof__wall_counts counts = {0}, since = {0}, off = {0};
    struct cpprof__wall_base base = {0};
    const struct cpprof__wall_base nothing = {0};
    uint32_t i;

    (void)state;
    add(&counts, 1, 5, CPPROF__WALL_RUNNING, 100);
    add(&counts, 2, 0, CPPROF__WALL_SLEEPING, 100);
    assert_true(cpprof__wall_base_take(&base, &counts));
    add(&counts, 1, 5, CPPROF__WALL_RUNNING, 7);
    add(&counts, 1, 6, CPPROF__WALL_SLEEPING, 1);
    for (i = 10; i < 2000; i++)
        add(&counts, i, 0, CPPROF__WALL_SLEEPING, 1);
    counts.lost_ns = 3;
    assert_true(cpprof__wall_counts_since(&counts, &base, 0, &since));
    assert_int_equal(total_ns(&since), 7 + 1 + 1990);
    assert_int_equal(since.n, 2 + 1990);
    assert_int_equal(since.lost_ns, 3);
    assert_true(cpprof__wall_counts_since(
        &counts, &nothing, CPPROF_FLAG_OFF_CPU | CPPROF_FLAG_NO_LABELS, &off));
    assert_int_equal(total_ns(&off), 100 + 1 + 1990);
    for (i = 0; i < off.n_slots; i++)
        assert_int_equal(off.slots[i].labels, 0);
    cpprof__wall_base_free(&base);
    cpprof__wall_counts_free(&counts);
    cpprof__wall_counts_free(&since);
    cpprof__wall_counts_free(&off);
}

static void
records_survive_the_growth_of_the_table(void **state)
{
    struct cpprof__wall_counts counts = {0}, read;
    struct cpprof__wall_summary summary = {0};
    uint32_t i, pass;

    (void)state;
    cpprof__wall_keep_begin(&counts);
    cpprof__wall_keep_summary(&kept_summary);
    for (pass = 0; pass < 2; pass++)
        for (i = 1; i <= 5000; i++)
            add(&counts, i, 0, CPPROF__WALL_SLEEPING, 3);
    cpprof__wall_counts_free(&counts);
    copy = *cpprof__wall_kept;
    assert_true(cpprof__wall_kept_open(&copy, &read, &summary));
    assert_int_equal(read.n_slots, 5000);
    assert_int_equal(total_ns(&read), 30000);
    assert_int_equal(read.lost_ns, 0);
}

static void
what_finds_no_record_is_lost_time(void **state)
{
    struct cpprof__wall_counts counts = {0}, read;
    struct cpprof__wall_summary summary = {0};
    uint32_t i;

    (void)state;
    cpprof__wall_keep_begin(&counts);
    cpprof__wall_keep_summary(&kept_summary);
    for (i = 1; i <= CPPROF__WALL_RECORDS + 9; i++)
        add(&counts, i, 0, CPPROF__WALL_SLEEPING, 1);
    cpprof__wall_counts_free(&counts);
    copy = *cpprof__wall_kept;
    assert_true(cpprof__wall_kept_open(&copy, &read, &summary));
    assert_int_equal(read.n_slots, CPPROF__WALL_RECORDS - 1);
    assert_int_equal(total_ns(&read) + read.lost_ns, CPPROF__WALL_RECORDS + 9);
}

static void
a_forked_child_has_kept_nothing(void **state)
{
    struct cpprof__wall_summary summary = {0};
    struct cpprof__wall_counts counts;

    (void)state;
    keep_three();
    cpprof__wall_keep_forked();
    copy = *cpprof__wall_kept;
    assert_false(cpprof__wall_kept_open(&copy, &counts, &summary));
}

static void
records_that_make_no_sense_are_left_out(void **state)
{
    struct cpprof__wall_summary summary = {0};
    struct cpprof__wall_counts counts;

    (void)state;
    keep_three();
    memset(&copy.records[4], 0,
           sizeof copy.records - 4 * sizeof copy.records[0]);
    copy.head.n_records = UINT32_MAX;
    copy.head.lost_ns = -5;
    copy.records[1].state = 3;
    copy.records[2].n = -1;
    copy.records[CPPROF__WALL_RECORDS - 1].ns = -1;
    assert_true(cpprof__wall_kept_open(&copy, &counts, &summary));
    assert_int_equal(counts.n_slots, CPPROF__WALL_RECORDS - 1);
    assert_int_equal(counts.lost_ns, 0);
    assert_int_equal(total_ns(&counts), 1);
}

static void
a_head_that_makes_no_sense_is_none(void **state)
{
    struct cpprof__wall_summary summary = {0};
    struct cpprof__wall_counts counts;

    (void)state;
    keep_three();
    copy.head.rate_hz = 0;
    assert_false(cpprof__wall_kept_open(&copy, &counts, &summary));
    copy.head.rate_hz = 1001;
    assert_false(cpprof__wall_kept_open(&copy, &counts, &summary));
    keep_three();
    copy.head.time_ns = 0;
    assert_false(cpprof__wall_kept_open(&copy, &counts, &summary));
    memset(&copy, 0, sizeof copy.head);
    assert_false(cpprof__wall_kept_open(&copy, &counts, &summary));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_kept_as_they_are_counted),
        cmocka_unit_test(records_that_are_not_wanted_are_left_out),
        cmocka_unit_test(counts_since_a_moment_are_what_was_added),
        cmocka_unit_test(counts_that_began_anew_add_up),
        cmocka_unit_test(records_survive_the_growth_of_the_table),
        cmocka_unit_test(what_finds_no_record_is_lost_time),
        cmocka_unit_test(a_forked_child_has_kept_nothing),
        cmocka_unit_test(records_that_make_no_sense_are_left_out),
        cmocka_unit_test(a_head_that_makes_no_sense_is_none),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
