/* SPDX-License-Identifier: MIT */
/* What is read in addresses and forms, as Go's packages read it. */
#include "base/text.h"
#include "http/call.h"
#include "http/form.h"
#include "http/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cpprof__form_value
in_query(const char *query, const char *name)
{
    const struct cpprof_http_request request = {.method = "GET",
                                                .query = query};

    return cpprof__form_value(&request, name);
}

static void
the_first_of_a_name_is_taken(void **state)
{
    (void)state;
    assert_true(cpprof__form_is(in_query("a=1&a=2", "a"), "1"));
    assert_true(cpprof__form_is(in_query("b=1&&a=2", "a"), "2"));
    assert_true(cpprof__form_is(in_query("a=&a=2", "a"), ""));
    assert_true(cpprof__form_is(in_query("a&a=2", "a"), ""));
    assert_true(cpprof__form_is(in_query("a=b=c", "a"), "b=c"));
    assert_true(cpprof__form_is(in_query("aa=1", "a"), ""));
    assert_true(cpprof__form_is(in_query(NULL, "a"), ""));
}

static void
escapes_are_read_in_names_and_values(void **state)
{
    (void)state;
    assert_true(cpprof__form_is(in_query("%61=x%2By+z", "a"), "x+y z"));
    assert_true(cpprof__form_is(in_query("a=%C3%a9", "a"), "\xc3\xa9"));
    assert_false(cpprof__form_is(in_query("a=1%00", "a"), "1"));
    assert_false(cpprof__form_is(in_query("a=12", "a"), "1"));
    assert_false(cpprof__form_is(in_query("a=1", "a"), "12"));
}

static void
a_pair_that_is_broken_is_not_there(void **state)
{
    (void)state;
    assert_true(cpprof__form_is(in_query("a=%zz&a=2", "a"), "2"));
    assert_true(cpprof__form_is(in_query("a=1%&a=2", "a"), "2"));
    assert_true(cpprof__form_is(in_query("a=1%4&a=2", "a"), "2"));
    assert_true(cpprof__form_is(in_query("a%=1&a=2", "a"), "2"));
    assert_true(cpprof__form_is(in_query("a=1;x&a=2", "a"), "2"));
}

static struct cpprof__form_value
in_form(const char *method, const char *type)
{
    static const char body[] = "a=body";
    const struct cpprof_http_request request = {
        .method = method,
        .query = "a=query",
        .content_type = type,
        .body = body,
        .n_body = sizeof body - 1,
    };

    return cpprof__form_value(&request, "a");
}

static void
a_form_comes_before_the_query(void **state)
{
    static const char form[] = "application/x-www-form-urlencoded";

    (void)state;
    assert_true(cpprof__form_is(in_form("POST", form), "body"));
    assert_true(cpprof__form_is(in_form("PUT", form), "body"));
    assert_true(cpprof__form_is(
        in_form("PATCH", "APPLICATION/x-www-form-urlencoded ; charset=x"),
        "body"));
    assert_true(cpprof__form_is(in_form("GET", form), "query"));
    assert_true(cpprof__form_is(in_form("POST", NULL), "query"));
    assert_true(cpprof__form_is(in_form("POST", "text/plain"), "query"));
    assert_true(cpprof__form_is(
        in_form("POST", "application/x-www-form-urlencodedx"), "query"));
}

static void
expect_int(const char *query, bool is_number, int64_t number)
{
    int64_t got;

    assert_int_equal(cpprof__form_int(in_query(query, "a"), &got), is_number);
    assert_int_equal(got, number);
}

static void
numbers_are_those_of_parse_int(void **state)
{
    (void)state;
    expect_int("a=1", true, 1);
    expect_int("a=%2B1", true, 1);
    expect_int("a=-12", true, -12);
    expect_int("a=0007", true, 7);
    expect_int("a=9223372036854775807", true, INT64_MAX);
    expect_int("a=-9223372036854775808", true, INT64_MIN);
    expect_int("a=9223372036854775808", false, INT64_MAX);
    expect_int("a=-9223372036854775809", false, INT64_MIN);
    expect_int("a=99999999999999999999999999", false, INT64_MAX);
    expect_int("a=99999999999999999999999999x", false, 0);
    expect_int("a=", false, 0);
    expect_int("a=-", false, 0);
    expect_int("a=+1", false, 0); /* a space */
    expect_int("a=1.5", false, 0);
    expect_int("a=0x10", false, 0);
    expect_int("a=1_0", false, 0);
    expect_int("a=1%00", false, 0);
}

static uint64_t
number(const char *text)
{
    uint64_t value;

    cpprof__go_uint(text, strlen(text), 0, &value);
    return value;
}

static void
addresses_are_those_of_parse_uint(void **state)
{
    (void)state;
    assert_int_equal(number("4198400"), 4198400);
    assert_int_equal(number("0x401000"), 0x401000);
    assert_int_equal(number("0X4f"), 0x4f);
    assert_int_equal(number("0b11"), 3);
    assert_int_equal(number("0o17"), 15);
    assert_int_equal(number("017"), 15);
    assert_int_equal(number("0x_401_000"), 0x401000);
    assert_int_equal(number("0_7"), 7);
    assert_int_equal(number("1_000"), 1000);
    assert_int_equal(number("18446744073709551615"), UINT64_MAX);
    assert_int_equal(number("18446744073709551616"), UINT64_MAX);
    assert_int_equal(number("0xfffffffffffffffff"), UINT64_MAX);
}

static void
what_is_no_address_is_0(void **state)
{
    static const char *const texts[] = {
        "",    "0",    "00",   "0x",   "0b",   "x",  "-1",    "+1",
        "1_",  "_1",   "1__2", "0x_",  "0x1_", "08", "0b2",   "0o8",
        "1e3", "0x1g", "1 ",   "\xff", "0xx",  "0_", "0x__1", "0b1_"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        if (number(texts[i]))
            fail_msg("%s is %llx", texts[i],
                     (unsigned long long)number(texts[i]));
}

static void
expect_clean(const char *path, const char *clean)
{
    struct cpprof__buffer b = {0};

    cpprof__mux_clean(&b, path);
    assert_false(b.failed);
    assert_string_equal((char *)b.data, clean);
    cpprof__buffer_free(&b);
}

static void
paths_are_cleaned_as_the_mux_does(void **state)
{
    (void)state;
    expect_clean("/debug/pprof/", "/debug/pprof/");
    expect_clean("/debug/pprof", "/debug/pprof");
    expect_clean("", "/");
    expect_clean("/", "/");
    expect_clean("//", "/");
    expect_clean("a", "/a");
    expect_clean("/a//b///", "/a/b/");
    expect_clean("/a/./b/.", "/a/b");
    expect_clean("/a/b/..", "/a");
    expect_clean("/a/b/../", "/a/");
    expect_clean("/a/..", "/");
    expect_clean("/../../a", "/a");
    expect_clean("/a/.b/..c/...", "/a/.b/..c/...");
}

static void
expect_path(const char *name, const char *escaped)
{
    struct cpprof__buffer b = {0};

    cpprof__text_path(&b, name);
    assert_int_equal(b.n, strlen(escaped));
    assert_memory_equal(b.data, escaped, b.n);
    cpprof__buffer_free(&b);
}

/* What Go 1.19 writes in the index for profiles of these names. */
static void
paths_are_escaped_as_go_does(void **state)
{
    (void)state;
    expect_path("heap", "heap");
    expect_path("a'b<c>&\"d", "a%27b%3Cc%3E&%22d");
    expect_path("sp ace[1]!(2)", "sp%20ace%5B1%5D%21%282%29");
    expect_path("x:y/z?q", "./x:y/z%3Fq");
    expect_path("x/y:z", "x/y:z");
    expect_path("*", "*");
    expect_path("**", "%2A%2A");
    expect_path("\xff~$,;=@+%", "%FF~$,;=@+%25");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_a_name_is_taken),
        cmocka_unit_test(escapes_are_read_in_names_and_values),
        cmocka_unit_test(a_pair_that_is_broken_is_not_there),
        cmocka_unit_test(a_form_comes_before_the_query),
        cmocka_unit_test(numbers_are_those_of_parse_int),
        cmocka_unit_test(addresses_are_those_of_parse_uint),
        cmocka_unit_test(what_is_no_address_is_0),
        cmocka_unit_test(paths_are_cleaned_as_the_mux_does),
        cmocka_unit_test(paths_are_escaped_as_go_does),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
