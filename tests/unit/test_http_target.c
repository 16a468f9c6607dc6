/* SPDX-License-Identifier: MIT */
/* What a request asks for, from whatever bytes. */
#include "http/server/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text; /* in a block of its own size: ASan sees what is past it */
static struct cpprof__http_target target;

static bool
parse(const char *given)
{
    free(text);
    text = strdup(given);
    return cpprof__http_target_parse(text, &target);
}

static int
leave(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void
a_path_and_a_query_are_parted(void **state)
{
    (void)state;
    assert_true(parse("/debug/pprof/symbol?0x1+0x2?%41"));
    assert_string_equal(target.path, "/debug/pprof/symbol");
    assert_string_equal(target.query, "0x1+0x2?%41");
    assert_null(target.host);
    assert_true(parse("/a"));
    assert_null(target.query);
    assert_true(parse("/a?"));
    assert_string_equal(target.query, "");
    assert_true(parse("*"));
    assert_string_equal(target.path, "*");
}

static void
a_path_is_decoded(void **state)
{
    (void)state;
    assert_true(parse("/%61%2Fb%c3%A4%3f?%61"));
    assert_string_equal(target.path, "/a/b\xc3\xa4?");
    assert_string_equal(target.query, "%61");
    assert_false(parse("/%"));
    assert_false(parse("/%4"));
    assert_false(parse("/%4g"));
    assert_false(parse("/%00"));
}

static void
a_host_in_the_target_is_found(void **state)
{
    (void)state;
    assert_true(parse("http://evil.example:80/a?b"));
    assert_string_equal(target.host, "evil.example:80");
    assert_string_equal(target.path, "/a");
    assert_string_equal(target.query, "b");
    assert_true(parse("HTTP://h"));
    assert_string_equal(target.host, "h");
    assert_string_equal(target.path, "/");
    assert_true(parse("http://h?q"));
    assert_string_equal(target.path, "/");
    assert_string_equal(target.query, "q");
    assert_true(parse("http:///a"));
    assert_string_equal(target.host, "");
}

static void
what_is_no_target_is_refused(void **state)
{
    static const char *const none[] = {
        "",      "a",     "?a",       "localhost:80", "https://h/", "/a b",
        "/\x7f", "/\x01", "ftp://h/", "**",           "http:/h",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(parse(none[i]));
}

/* All that can be made of those bytes: texts lie in what was given, or it is
 * none. */
static void
whatever_comes_stays_in_its_bytes(void **state)
{
    static const char bytes[] = "/%4?h:a";
    uint32_t i, v, n;

    (void)state;
    for (i = 0; i < 7 * 7 * 7 * 7 * 7; i++) {
        char given[16] = "http://";

        for (v = i, n = i % 2 ? 7 : 0; v; v /= 7)
            given[n++] = bytes[v % 7];
        given[n] = 0;
        if (!parse(given))
            continue;
        assert_true(strlen(target.path) <= n || !strcmp(target.path, "/"));
        assert_true(!target.query || target.query <= text + n);
        assert_true(!target.host || target.host == text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_path_and_a_query_are_parted, leave),
        cmocka_unit_test_teardown(a_path_is_decoded, leave),
        cmocka_unit_test_teardown(a_host_in_the_target_is_found, leave),
        cmocka_unit_test_teardown(what_is_no_target_is_refused, leave),
        cmocka_unit_test_teardown(whatever_comes_stays_in_its_bytes, leave),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
