/* SPDX-License-Identifier: MIT */
/*
 * The text of -top. What is expected here was printed by the reference for the
 * same profiles; tests/golden has more of it.
 */
#include "pprof_fixture.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

/* Half of the time in leaf, which is inlined into main on one way only. */
static struct pprof_profile *
make(void)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "c0ffee");
    cpprof__put_uint(&f.bytes, 9, 1700000000000000000);
    cpprof__put_uint(&f.bytes, 10, 2000000000);
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "seen"));
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "# not seen"));
    cpprof__put_uint(&f.bytes, 15, fixture_string(&f, "https://doc"));
    fixture_stack(&f, "leaf<main start", 300000000, "k=v n=64kb");
    fixture_stack(&f, "leaf main start", 200000000, "k=w n=4mb");
    fixture_stack(&f, "cold main start", 1000000, NULL);
    fixture_stack(&f, "main main start", 500000000, "k=v");
    return fixture_must_read(&f);
}

static void
expect(struct pprof_report_options options, const char *text)
{
    struct pprof_profile *p = make();
    struct report_text t = must_report(p, PPROF_REPORT_TOP, options);

    assert_string_equal((char *)t.bytes.data, text);
    report_text_free(&t);
    pprof_free(p);
}

static struct pprof_report_options
compact(void)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    options.flags = PPROF_REPORT_COMPACT_LABELS;
    return options;
}

#define COLUMNS "      flat  flat%   sum%        cum   cum%\n"

static void
whole_heading_comes_first(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    expect(options,
           "File: prog\n"
           "Build ID: c0ffee\n"
           "seen\n"
           "Type: cpu\n"
           "Doc: https://doc\n"
           "Time: 2023-11-14 22:13:20 UTC\n"
           "Duration: 2s, Total samples = 1001ms (50.05%)\n"
           "Showing nodes accounting for 1000ms, 99.90% of 1001ms total\n"
           "Dropped 1 node (cum <= 5ms)\n" COLUMNS
           "     500ms 49.95% 49.95%      500ms 49.95%  leaf\n"
           "     500ms 49.95% 99.90%     1001ms   100%  main\n"
           "         0     0% 99.90%     1001ms   100%  start\n");
}

static void
cum_sorts_by_cumulative_value(void **state)
{
    struct pprof_report_options options = compact();

    options.flags |= PPROF_REPORT_CUM;
    expect(options,
           "Showing nodes accounting for 1000ms, 99.90% of 1001ms total\n"
           "Dropped 1 node (cum <= 5ms)\n" COLUMNS
           "     500ms 49.95% 49.95%     1001ms   100%  main\n"
           "         0     0% 49.95%     1001ms   100%  start\n"
           "     500ms 49.95% 99.90%      500ms 49.95%  leaf\n");
}

static void
lines_tell_calls_apart_by_inlining(void **state)
{
    struct pprof_report_options options = compact();

    options.granularity = PPROF_REPORT_LINES;
    expect(options,
           "Showing nodes accounting for 1000ms, 99.90% of 1001ms total\n"
           "Dropped 1 node (cum <= 5ms)\n" COLUMNS
           "     500ms 49.95% 49.95%      701ms 70.03%  main /src/file.c:13\n"
           "     300ms 29.97% 79.92%      300ms 29.97%  leaf /src/file.c:10 "
           "(inline)\n"
           "     200ms 19.98% 99.90%      200ms 19.98%  leaf /src/file.c:12\n"
           "         0     0% 99.90%      300ms 29.97%  main /src/file.c:10\n"
           "         0     0% 99.90%     1001ms   100%  start "
           "/src/file.c:11\n");
}

static void
nodecount_says_how_many_are_left_out(void **state)
{
    struct pprof_report_options options = compact();

    options.nodecount = 1;
    expect(options,
           "Showing nodes accounting for 500ms, 49.95% of 1001ms total\n"
           "Dropped 1 node (cum <= 5ms)\n"
           "Showing top 1 nodes out of 3\n" COLUMNS
           "     500ms 49.95% 49.95%      500ms 49.95%  leaf\n");
}

static void
mean_divides_by_the_first_value(void **state)
{
    struct pprof_report_options options = compact();

    options.flags |= PPROF_REPORT_MEAN;
    expect(options,
           "Showing nodes accounting for 750ms, 299.70% of 250.25ms total\n"
           "Dropped 1 node (cum <= 1.25ms)\n" COLUMNS
           "     250ms 99.90% 99.90%      250ms 99.90%  leaf\n"
           "     500ms 199.80% 299.70%   250.25ms   100%  main\n"
           "         0     0% 299.70%   250.25ms   100%  start\n");
}

static void
filters_are_named_in_the_heading(void **state)
{
    struct pprof_report_options options = compact();

    options.focus = "leaf";
    options.tagfocus = "k=v";
    expect(
        options,
        "Active filters:\n"
        "   focus=leaf\n"
        "   tagfocus=k=v\n"
        "Showing nodes accounting for 300ms, 29.97% of 1001ms total\n" COLUMNS
        "     300ms 29.97% 29.97%      300ms 29.97%  leaf (inline)\n"
        "         0     0% 29.97%      300ms 29.97%  main\n"
        "         0     0% 29.97%      300ms 29.97%  start\n");
}

static void
long_filter_is_cut_in_the_heading(void **state)
{
    struct pprof_report_options options = compact();

    options.focus = "leaf|01234567890123456789012345678901234567890123456789"
                    "0123456789012345678901234567890";
    options.nodecount = 1;
    expect(options,
           "Active filters:\n"
           "   focus=leaf|012345678901234567890123456789012345678901234567890"
           "123456789012345678\xe2\x80\xa6\n"
           "Showing nodes accounting for 500ms, 49.95% of 1001ms total\n"
           "Showing top 1 nodes out of 3\n" COLUMNS
           "     500ms 49.95% 49.95%      500ms 49.95%  leaf\n");
}

static void
tag_frames_stand_at_both_ends(void **state)
{
    struct pprof_report_options options = compact();

    options.tagleaf = "n,k";
    options.tagroot = "k";
    options.flags |= PPROF_REPORT_NO_TRIM;
    expect(options,
           "Showing nodes accounting for 1001ms, 100% of 1001ms total\n" COLUMNS
           "     800ms 79.92% 79.92%      800ms 79.92%  v\n"
           "     200ms 19.98% 99.90%      200ms 19.98%  w\n"
           "       1ms   0.1%   100%      501ms 50.05%  <unknown>\n"
           "         0     0%   100%      200ms 19.98%  4MB\n"
           "         0     0%   100%      300ms 29.97%  64kB\n"
           "         0     0%   100%        1ms   0.1%  cold\n"
           "         0     0%   100%      500ms 49.95%  leaf\n"
           "         0     0%   100%     1001ms   100%  main\n"
           "         0     0%   100%     1001ms   100%  start\n");
}

/* ------------------------------------------------------ other profiles ---- */

/* Print a profile of stacks without a heading; frees it. */
static void
expect_table(struct fixture *f, struct pprof_report_options options,
             const char *text)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = fixture_must_read(f);
    struct report_text t = {0};
    const char *table;

    assert_int_equal(report_text_top(p, options, &t, &error), CPPROF_OK);
    table = strstr((char *)t.bytes.data, COLUMNS);
    assert_non_null(table);
    assert_string_equal(table + strlen(COLUMNS), text);
    report_text_free(&t);
    pprof_free(p);
}

static void
recursive_function_counts_once_in_a_stack(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "a b a b a main", 100, NULL);
    fixture_stack(&f, "b a b a main", 10, NULL);
    fixture_stack(&f, "a main", 1, NULL);
    expect_table(&f, compact(),
                 "     101ns 90.99% 90.99%      111ns   100%  a\n"
                 "      10ns  9.01%   100%      110ns 99.10%  b\n"
                 "         0     0%   100%      111ns   100%  main\n");
}

/* One call was inlined, the other not; both from the same caller or not. */
static void
function_inlined_sometimes_is_partial_inline(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "x<a main", 100, NULL);
    fixture_stack(&f, "x b main", 100, NULL);
    fixture_stack(&f, "y<b main", 100, NULL);
    expect_table(
        &f, compact(),
        "     200ns 66.67% 66.67%      200ns 66.67%  x (partial-inline)\n"
        "     100ns 33.33%   100%      100ns 33.33%  y (inline)\n"
        "         0     0%   100%      100ns 33.33%  a\n"
        "         0     0%   100%      200ns 66.67%  b\n"
        "         0     0%   100%      300ns   100%  main\n");
}

/* The inlined call weighs less than -edgefraction of all. */
static void
call_below_the_edge_fraction_is_not_seen(void **state)
{
    struct pprof_report_options options = compact();
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "x<a main", 10, NULL);
    fixture_stack(&f, "x b main", 990, NULL);
    options.edgefraction = 0.02;
    expect_table(&f, options,
                 "    1000ns   100%   100%     1000ns   100%  x\n"
                 "         0     0%   100%       10ns  1.00%  a\n"
                 "         0     0%   100%      990ns 99.00%  b\n"
                 "         0     0%   100%     1000ns   100%  main\n");
}

/* Around the frame that is left out, x is called by main: through an inlined
 * frame, and through another. */
static void
edge_around_a_dropped_node_is_that_of_its_ends(void **state)
{
    struct pprof_report_options options = compact();
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "x<small main", 10, NULL);
    fixture_stack(&f, "x<other main", 990, NULL);
    fixture_stack(&f, "main", 500, NULL);
    options.nodefraction = 0.1;
    options.edgefraction = 0;
    expect_table(&f, options,
                 "    1000ns 66.67% 66.67%     1000ns 66.67%  x (inline)\n"
                 "     500ns 33.33%   100%     1500ns   100%  main\n"
                 "         0     0%   100%      990ns 66.00%  other\n");
}

static void
negative_nodes_are_dropped_when_asked(void **state)
{
    struct pprof_report_options options = compact();
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "a main", 300, NULL);
    fixture_stack(&f, "b main", -100, NULL);
    options.flags |= PPROF_REPORT_DROP_NEGATIVE;
    expect_table(&f, options,
                 "     300ns 75.00% 75.00%      300ns 75.00%  a\n"
                 "         0     0% 75.00%      200ns 50.00%  main\n");
}

static void
percentages_of_a_comparison_are_of_the_base(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "a main", 300, NULL);
    fixture_stack(&f, "a main", -100, "pprof::base=true");
    expect_table(&f, compact(),
                 "     200ns 200.00% 200.00%      200ns 200.00%  a\n"
                 "         0     0% 200.00%      200ns 200.00%  main\n");
}

static void
location_without_functions_is_its_mapping(void **state)
{
    const int64_t values[] = {1, 100};
    const uint64_t stack[] = {1, 2};
    struct pprof_report_options options = compact();
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/lib/x.so", "");
    fixture_location(&f, 1, 1, 0x1234, 0);
    fixture_location(&f, 2, 0, 0x5678, 0);
    fixture_sample(&f, stack, 2, values, NULL);
    expect_table(&f, options,
                 "     100ns   100%   100%      100ns   100%  [x.so]\n"
                 "         0     0%   100%      100ns   100%  <unknown>\n");
}

static void
empty_stack_counts_for_the_total_alone(void **state)
{
    const int64_t values[] = {1, 100};
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_stack(&f, "a", 100, NULL);
    fixture_sample(&f, NULL, 0, values, NULL);
    expect_table(&f, compact(),
                 "     100ns 50.00% 50.00%      100ns 50.00%  a\n");
}

static void
profile_without_samples_is_an_empty_table(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    expect_table(&f, compact(), "");
}

/* ------------------------------------------------------------- errors ---- */

static void
expect_error(struct pprof_report_options options, enum cpprof_status status,
             const char *text)
{
    struct pprof_profile *p = make();
    struct cpprof_error error = {0};
    struct report_text t = {0};

    assert_int_equal(report_text_top(p, options, &t, &error), status);
    assert_string_equal(error.text, text);
    assert_string_equal((char *)t.bytes.data, "");
    assert_int_equal(t.n_closed, 1);
    assert_int_not_equal(t.failed, 0);
    report_text_free(&t);
    pprof_free(p);
}

static void
wrong_option_is_an_error_and_closes_the_writer(void **state)
{
    struct pprof_report_options options = compact();
    char text[96];

    options.sample_index = "2";
    expect_error(options, CPPROF_INVALID,
                 "sample_index 2 is outside the range [0..1]");
    options.sample_index = "wall";
    expect_error(options, CPPROF_INVALID,
                 "sample_index \"wall\" must be one of: [samples cpu]");
    options = compact();
    options.divide_by = 0;
    expect_error(options, CPPROF_INVALID, "zero divisor specified");
    options = compact();
    options.size = 7;
    snprintf(text, sizeof text, "report options of 7 bytes, not %zu",
             sizeof options);
    expect_error(options, CPPROF_INVALID, text);
    options = compact();
    options.hide = "(";
    expect_error(options, CPPROF_BAD_DATA,
                 "parsing hide regexp: error parsing regexp: "
                 "missing closing ): `(`");
    options = compact();
    options.tagfocus = "a,[";
    expect_error(options, CPPROF_BAD_DATA,
                 "parsing tagfocus regexp: error parsing regexp: "
                 "missing closing ]: `[`");
}

static int
refuse(void *ctx, const void *data, size_t n)
{
    return ENOSPC;
}

static void
write_error_is_returned(void **state)
{
    struct cpprof_writer writer = {sizeof writer, refuse, NULL, NULL};
    struct pprof_profile *p = make();
    struct cpprof_error error = {0};

    assert_int_equal(
        pprof_report_write(p, &writer, PPROF_REPORT_TOP, NULL, &error),
        CPPROF_SYSTEM);
    assert_int_equal(error.sys, ENOSPC);
    assert_string_equal(error.text,
                        "writing the report: No space left on device");
    pprof_free(p);
}

static void
expression_that_matches_nothing_is_told(void **state)
{
    struct pprof_report_options options = compact();
    struct pprof_profile *p = make();
    struct report_text t = {0};

    options.focus = options.ignore = options.show_from = "nothing";
    options.tagfocus = "nothing";
    options.tagroot = "none";
    assert_int_equal(report_text_top(p, options, &t, NULL), CPPROF_OK);
    assert_string_equal((char *)t.warnings.data,
                        "For tag n used unit kb, also encountered unit(s) mb\n"
                        "TagRoot expression matched no samples\n"
                        "Focus expression matched no samples\n"
                        "Ignore expression matched no samples\n"
                        "ShowFrom expression matched no samples\n"
                        "TagFocus expression matched no samples\n");
    report_text_free(&t);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_heading_comes_first),
        cmocka_unit_test(cum_sorts_by_cumulative_value),
        cmocka_unit_test(lines_tell_calls_apart_by_inlining),
        cmocka_unit_test(nodecount_says_how_many_are_left_out),
        cmocka_unit_test(mean_divides_by_the_first_value),
        cmocka_unit_test(filters_are_named_in_the_heading),
        cmocka_unit_test(long_filter_is_cut_in_the_heading),
        cmocka_unit_test(tag_frames_stand_at_both_ends),
        cmocka_unit_test(recursive_function_counts_once_in_a_stack),
        cmocka_unit_test(function_inlined_sometimes_is_partial_inline),
        cmocka_unit_test(call_below_the_edge_fraction_is_not_seen),
        cmocka_unit_test(edge_around_a_dropped_node_is_that_of_its_ends),
        cmocka_unit_test(negative_nodes_are_dropped_when_asked),
        cmocka_unit_test(percentages_of_a_comparison_are_of_the_base),
        cmocka_unit_test(location_without_functions_is_its_mapping),
        cmocka_unit_test(empty_stack_counts_for_the_total_alone),
        cmocka_unit_test(profile_without_samples_is_an_empty_table),
        cmocka_unit_test(wrong_option_is_an_error_and_closes_the_writer),
        cmocka_unit_test(write_error_is_returned),
        cmocka_unit_test(expression_that_matches_nothing_is_told),
    };

    setenv("TZ", "UTC", 1);
    tzset();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
