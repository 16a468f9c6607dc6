/* SPDX-License-Identifier: MIT */
/* Units, percentages, paths, regular expressions: text in, text out. */
#include "profile/filter/regexp.h"
#include "profile/model/path.h"
#include "profile/model/unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

/* ------------------------------------------------------------- units ---- */

static void
values_are_scaled_and_printed(void **state)
{
    static const struct {
        int64_t value;
        const char *from, *to, *text;
    } cases[] = {
        {1234567, "nanoseconds", "auto", "1.23ms"},
        {1234567, "ns", "us", "1234.57us"},
        {2000, "milliseconds", "minimum", "2s"},
        {5400, "seconds", "auto", "1.50hrs"},
        {999, "ns", "minimum", "999ns"},
        {0, "ns", "auto", "0"},
        {-3000, "us", "auto", "-3ms"},
        {512 << 10, "bytes", "auto", "512kB"},
        {1536, "Byte", "MB", "0"},
        {1 << 20, "bytes", "mb", "1MB"},
        {12345, "count", "count", "12345"},
        {7, "samples", "minimum", "7"},
        {7, "samples", "widgets", "7widgets"},
        {70000000, "ns", "widgets", "0.07s"},
        {5, "ms", "kb", "0.01s"},
        {3, "gcu", "auto", "3GCU"},
        {1500, "millisec", "auto", "1500"},
        {INT64_MIN, "ns", "ns", "-9223372036854775808ns"},
    };
    char text[CPPROF__LABEL_TEXT];
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cpprof__scaled_label(text, cases[i].value, cases[i].from, cases[i].to);
        assert_string_equal(text, cases[i].text);
    }
}

static void
percentages_have_two_digits(void **state)
{
    static const struct {
        int64_t value, total;
        const char *text;
    } cases[] = {
        {0, 0, "    0%"},        {1, 1, "  100%"},
        {9995, 10000, "  100%"}, {99, 100, "99.00%"},
        {1, 100, " 1.00%"},      {9, 1000, "  0.9%"},
        {123, 100000, " 0.12%"}, {12, 1000000, "0.0012%"},
        {1, 10000000, "1e-05%"}, {-5, 10, "50.00%"},
        {3, 1, "300.00%"},
    };
    char text[CPPROF__PERCENT_TEXT];
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cpprof__percentage(text, cases[i].value, cases[i].total);
        assert_string_equal(text, cases[i].text);
    }
}

static void
doubles_become_numbers_as_in_go(void **state)
{
    assert_int_equal(cpprof__to_int64(-1.9), -1);
    assert_true(cpprof__to_int64(1e300) == INT64_MIN);
    assert_true(cpprof__to_int64(0x1p63) == INT64_MIN);
    assert_int_equal(cpprof__round(2.5), 3);
    assert_int_equal(cpprof__round(-2.5), -3);
    assert_int_equal(cpprof__round(2.4999), 2);
    assert_int_equal(cpprof__round(0x1p53 + 2), ((int64_t)1 << 53) + 2);
}

/* ------------------------------------------------------------- paths ---- */

static void
paths_are_cleaned_as_in_go(void **state)
{
    static const char *const cases[][2] = {
        {"abc", "abc"},
        {"abc/def", "abc/def"},
        {"", "."},
        {"abc/", "abc"},
        {"/", "/"},
        {"//abc//", "/abc"},
        {"./abc/./def", "abc/def"},
        {"abc/..", "."},
        {"abc/../../x", "../x"},
        {"/..", "/"},
        {"/../abc", "/abc"},
        {"../../abc", "../../abc"},
        {"abc/def/../../..", ".."},
        {"abc/def/..", "abc"},
        {"a/..b/...", "a/..b/..."},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof__buffer out = {0};

        cpprof__path_clean(cases[i][0], strlen(cases[i][0]), &out);
        cpprof__buffer_append(&out, "", 1);
        assert_string_equal((char *)out.data, cases[i][1]);
        cpprof__buffer_free(&out);
    }
}

static void
last_element_of_a_path_is_found(void **state)
{
    static const char *const cases[][2] = {
        {"", "."},        {"/", "/"},      {"///", "/"},
        {"a/b c", "b c"}, {"/a/b//", "b"}, {"a", "a"},
    };
    size_t i, n;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *base =
            cpprof__path_base(cases[i][0], strlen(cases[i][0]), &n);

        assert_int_equal(n, strlen(cases[i][1]));
        assert_memory_equal(base, cases[i][1], n);
    }
}

static void
prefixes_are_trimmed(void **state)
{
    static const struct {
        const char *path, *trim, *source, *rest;
    } cases[] = {
        {"/a/b/c.c", NULL, NULL, "/a/b/c.c"},
        {"/a/b/c.c", "/a", NULL, "b/c.c"},
        {"/a/b/c.c", "/x:/a/b/", NULL, "c.c"},
        {"/ab/c.c", "/a", NULL, "/ab/c.c"},
        {"/proc/self/cwd/x.c", NULL, NULL, "x.c"},
        {"/proc/self/cwd/./x.c", "/y", NULL, "x.c"},
        {"/r/my-project/foo/b.c", NULL, "/l/my-project", "foo/b.c"},
        {"/r/my-project/foo/b.c", "/z", "/l/my-project",
         "/r/my-project/foo/b.c"},
        {"/r/p/foo/b.c", NULL, "/no:/home/p", "foo/b.c"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(
            cases[i].path + cpprof__path_trim(cases[i].path,
                                              strlen(cases[i].path),
                                              cases[i].trim, cases[i].source),
            cases[i].rest);
}

/* ---------------------------------------------------------- patterns ---- */

static bool
matches(const char *expression, const char *text)
{
    struct cpprof__regexp *r;
    bool result;

    assert_int_equal(cpprof__regexp_make(expression, "x", &r, NULL), CPPROF_OK);
    result = cpprof__regexp_matches(r, text, strlen(text));
    assert_int_equal(cpprof__regexp_status(r, NULL), CPPROF_OK);
    cpprof__regexp_free(r);
    return result;
}

static void
expressions_match_as_in_re2(void **state)
{
    assert_true(matches("b", "abc"));
    assert_true(matches("", "abc"));
    assert_false(matches("^b", "abc"));
    assert_true(matches("(?i)BUFFER", "a buffer"));
    assert_true(matches("[[:upper:]]\\d+", "aX12"));
    assert_true(matches("c$", "abc"));
    assert_false(matches("c$", "abc\n"));
    assert_false(matches("a.b", "a\nb"));
    assert_true(matches("(?s)a.b", "a\nb"));
    assert_true(matches("^..$", "\xc3\xa9x"));
    assert_true(matches("x", "\xff\xfex"));
    assert_true(matches("std::(map|set)<.*>", "std::set<int>"));
}

static void
expression_that_is_none_is_refused(void **state)
{
    struct cpprof_error error = {0};
    struct cpprof__regexp *r = NULL;

    assert_int_equal(cpprof__regexp_make("a(", "focus", &r, &error),
                     CPPROF_BAD_DATA);
    assert_null(r);
    assert_non_null(strstr(error.text, "parsing focus regexp: "));
    assert_non_null(strstr(error.text, "`a(`"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_scaled_and_printed),
        cmocka_unit_test(percentages_have_two_digits),
        cmocka_unit_test(doubles_become_numbers_as_in_go),
        cmocka_unit_test(paths_are_cleaned_as_in_go),
        cmocka_unit_test(last_element_of_a_path_is_found),
        cmocka_unit_test(prefixes_are_trimmed),
        cmocka_unit_test(expressions_match_as_in_re2),
        cmocka_unit_test(expression_that_is_none_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
