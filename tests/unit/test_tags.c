/* SPDX-License-Identifier: MIT */
/* The text of -tags and of -comments, and the columns that -tags is made of. */
#include "pprof_fixture.h"
#include "report/report.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Reads the profile, frees the fixture, and compares its -tags. */
static void
expect(struct fixture *f, struct pprof_report_options options, const char *text)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = fixture_must_read(f);
    struct report_text t = {0};

    if (report_text_of(p, PPROF_REPORT_TAGS, options, &t, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    assert_string_equal((char *)t.bytes.data, text);
    assert_int_equal(t.n_closed, 1);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    report_text_free(&t);
    pprof_free(p);
}

static const struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;

static void
keys_are_sorted_by_name_and_values_by_size(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 300000000, "thread=main");
    fixture_stack(&f, "b", 500000000, "thread=io zone=b");
    fixture_stack(&f, "c", 100000000, "thread=main zone=a");
    fixture_stack(&f, "d", 100000000, "zone=c");
    expect(&f, defaults,
           " thread: Total 900ms of 1s (90.00%)\n"
           "         500ms (50.00%): io\n"
           "         400ms (40.00%): main\n"
           "\n"
           " zone: Total 700ms of 1s (70.00%)\n"
           "       500ms (50.00%): b\n"
           "       100ms (10.00%): a\n"
           "       100ms (10.00%): c\n"
           "\n");
}

static void
numbers_are_printed_in_the_unit_of_their_key(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 600000000, "size=2048kb depth=7");
    fixture_stack(&f, "b", 300000000, "size=100kb bytes=4096");
    fixture_stack(&f, "b", 100000000, "size=2048kb");
    expect(&f, defaults,
           " bytes: Total 300ms of 1s (30.00%)\n"
           "        300ms (30.00%): 4kB\n"
           "\n"
           " depth: Total 600ms of 1s (60.00%)\n"
           "        600ms (60.00%): 7\n"
           "\n"
           " size: Total 1s of 1s (  100%)\n"
           "       700ms (70.00%): 2MB\n"
           "       300ms (30.00%): 100kB\n"
           "\n");
}

static void
numbers_that_print_alike_are_one(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 1000000000, "size=1048576b");
    fixture_stack(&f, "b", 2000000000, "size=1048577b");
    expect(&f, defaults,
           " size: Total 3s of 3s (  100%)\n"
           "       3s (  100%): 1MB\n"
           "\n");
}

static void
two_values_of_a_key_in_one_sample_count_both(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 1000000000, "k=x k=y");
    expect(&f, defaults,
           " k: Total 2s of 1s (200.00%)\n"
           "    1s (  100%): x\n"
           "    1s (  100%): y\n"
           "\n");
}

static void
samples_of_no_value_show_their_labels(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 0, "k=x");
    fixture_stack(&f, "a", 5000000000, NULL);
    expect(&f, defaults,
           " k: Total 0 of 5s (    0%)\n"
           "    0 (    0%): x\n"
           "\n");
}

static void
filters_leave_out_labels_and_not_the_total(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 1000000000, "k=x gone=1");
    fixture_stack(&f, "b", 3000000000, "k=y");
    options.focus = "a";
    options.taghide = "gone";
    expect(&f, options,
           " k: Total 1s of 4s (25.00%)\n"
           "    1s (25.00%): x\n"
           "\n");
}

static void
unit_type_and_divisor_are_those_asked_for(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 1500000000, "k=x");
    options.unit = "us";
    options.divide_by = 2;
    expect(&f, options,
           " k: Total 750000us of 750000us (  100%)\n"
           "    750000us (  100%): x\n"
           "\n");
    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 1500000000, "k=x");
    options = defaults;
    options.sample_index = "samples";
    expect(&f, options,
           " k: Total 1 of 1 (  100%)\n"
           "    1 (  100%): x\n"
           "\n");
}

static void
profile_without_labels_prints_nothing(void **state)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "prog", "");
    fixture_stack(&f, "a", 1000, NULL);
    expect(&f, defaults, "");
}

/* ---------------------------------------------------------- comments ---- */

static void
every_comment_has_a_line(void **state)
{
    struct fixture f = {0};
    struct report_text t = {0};
    struct cpprof_error error = {0};
    struct pprof_profile *p;

    fixture_cpu(&f);
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "first"));
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "# for tools"));
    p = fixture_must_read(&f);
    assert_int_equal(
        report_text_of(p, PPROF_REPORT_COMMENTS, defaults, &t, &error),
        CPPROF_OK);
    assert_string_equal((char *)t.bytes.data, "first\n# for tools\n");
    report_text_free(&t);
    pprof_free(p);
}

/* ----------------------------------------------------------- columns ---- */

static void
expect_columns(const char *text, const char *columns)
{
    struct cpprof__buffer out = {0};

    assert_true(cpprof__tabs_align((const uint8_t *)text, strlen(text), &out));
    cpprof__buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, columns);
    cpprof__buffer_free(&out);
}

static void
column_is_as_wide_as_its_widest_cell(void **state)
{
    expect_columns("a\tbb\tx\nccc\td\ty\n", "   a bbx\n ccc  dy\n");
}

static void
line_without_a_column_ends_it(void **state)
{
    expect_columns("long word\tx\n\na\ty\n", " long wordx\n\n ay\n");
    expect_columns("a\tlong\tx\nb\ty\nc\td\tz\n", " a longx\n by\n c dz\n");
}

static void
text_behind_the_last_tab_is_of_no_column(void **state)
{
    expect_columns("a\tvery long\nb\tc\td", " avery long\n b cd");
    expect_columns("no newline", "no newline");
    expect_columns("", "");
}

static void
characters_are_counted_and_not_bytes(void **state)
{
    /* Two of them; a byte that is none counts as one. */
    expect_columns("\xc3\xa4\xe2\x82\xac\tx\nabc\ty\n",
                   "  \xc3\xa4\xe2\x82\xacx\n abcy\n");
    expect_columns("\xe2\x82\tx\nabc\ty\n", "  \xe2\x82x\n abcy\n");
    expect_columns("\xf4\x90\x80\x80\tx\nabcde\ty\n",
                   "  \xf4\x90\x80\x80x\n abcdey\n");
}

static void
form_feed_ends_all_columns(void **state)
{
    expect_columns("long\tx\fa\ty\n", " longx\n ay\n");
    expect_columns("a\vb\v\n", " a b\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_sorted_by_name_and_values_by_size),
        cmocka_unit_test(numbers_are_printed_in_the_unit_of_their_key),
        cmocka_unit_test(numbers_that_print_alike_are_one),
        cmocka_unit_test(two_values_of_a_key_in_one_sample_count_both),
        cmocka_unit_test(samples_of_no_value_show_their_labels),
        cmocka_unit_test(filters_leave_out_labels_and_not_the_total),
        cmocka_unit_test(unit_type_and_divisor_are_those_asked_for),
        cmocka_unit_test(profile_without_labels_prints_nothing),
        cmocka_unit_test(every_comment_has_a_line),
        cmocka_unit_test(column_is_as_wide_as_its_widest_cell),
        cmocka_unit_test(line_without_a_column_ends_it),
        cmocka_unit_test(text_behind_the_last_tab_is_of_no_column),
        cmocka_unit_test(characters_are_counted_and_not_bytes),
        cmocka_unit_test(form_feed_ends_all_columns),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
