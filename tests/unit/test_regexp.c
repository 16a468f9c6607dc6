/* SPDX-License-Identifier: MIT */
/*
 * Expressions mean what they mean in RE2, and what RE2 refuses is refused. The
 * expected results and texts are those of Go's regexp package.
 */
#include "profile/filter/regexp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct match {
    const char *expression, *text;
    bool matches;
};

static void
expect_matches(const struct match *cases, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct match *c = &cases[i];
        struct cpprof_error error = {0};
        struct cpprof__regexp *r = NULL;

        if (cpprof__regexp_make(c->expression, "x", &r, &error))
            fail_msg("%s: %s", c->expression, error.text);
        if (cpprof__regexp_matches(r, c->text, strlen(c->text)) != c->matches)
            fail_msg("'%s' and '%s'", c->expression, c->text);
        assert_int_equal(cpprof__regexp_status(r, NULL), CPPROF_OK);
        cpprof__regexp_free(r);
    }
}

#define EXPECT_MATCHES(cases)                                                  \
    expect_matches(cases, sizeof(cases) / sizeof(cases)[0])

static void
anchors_match_at_the_very_ends(void **state)
{
    static const struct match cases[] = {
        {"^b", "a\nb", false},        {"(?m)^b", "a\nb", true},
        {"a$", "a\n", false},         {"(?m)a$", "a\n", true},
        {"a\\z", "a\n", false},       {"\\Ab", "a\nb", false},
        {"(?m:^)$", "a\n", true},     {"(?m)^a$", "b\na\nc", true},
        {"(?m-m:^)b", "a\nb", false}, {"\\bis\\b", "this is", true},
        {"\\Bis", "this", true},      {"\\b\xc3\xa9", "\xc3\xa9", false},
        {"^*a", "ba", true},          {"(?:$)+", "a", true},
    };

    EXPECT_MATCHES(cases);
}

static void
classes_are_those_of_re2(void **state)
{
    static const struct match cases[] = {
        {"^\\s$", "\v", false},
        {"^[[:space:]]$", "\v", true},
        {"^\\w$", "\xc3\xa9", false},
        {"^\\W$", "\xc3\xa9", true},
        {"^\\d$", "\xd9\xa3", false},
        {"^\\pN$", "\xd9\xa3", true},
        {"^[[:word:]]+$", "a_1", true},
        {"^[[:^alpha:]]$", "1", true},
        {"^[^[:^lower:]]$", "a", true},
        {"^[]a]+$", "]a", true},
        {"^[^]a]$", "]", false},
        {"^[a-]+$", "a-", true},
        {"^[\\d\\-x]+$", "1-x", true},
        {"^[[.]+$", "[.", true},
        {"^[^a]$", "\n", true},
        {"^.$", "\n", false},
        {"(?s)^.$", "\n", true},
        {"^\\p{Greek}$", "\xce\xb1", true},
        {"^\\P{Greek}$", "\xce\xb1", false},
        {"^\\p{^Greek}$", "\xce\xb1", false},
        {"^\\p{Any}$", "\n", true},
        {"^\\p{Lu}$", "a", false},
        /* Of the script alone: this mark is used with Devanagari. */
        {"\\p{Devanagari}", "\xe1\xb3\x90", false},
    };

    EXPECT_MATCHES(cases);
}

static void
case_is_folded_as_in_re2(void **state)
{
    static const struct match cases[] = {
        {"(?i)main", "MAIN", true},
        {"(?i:M)ain", "MAIN", false},
        {"(?i-i)a", "A", false},
        {"((?i)a)b", "AB", false},
        {"x(?i)a|b", "B", true},
        {"(?i)k", "\xe2\x84\xaa", true},
        {"(?i)^\\w$", "\xe2\x84\xaa", true},
        {"^\\w$", "\xe2\x84\xaa", false},
        {"(?i)^\\W$", "\xc5\xbf", false},
        {"(?i)^[^K]$", "k", false},
        {"(?i)^[[:^upper:]]$", "a", false},
        {"(?i)^\\p{Lu}$", "a", true},
        {"a(?i)*b", "aab", true},
    };

    EXPECT_MATCHES(cases);
}

static void
escapes_and_literals_are_those_of_re2(void **state)
{
    static const struct match cases[] = {
        {"^\\Qa.b\\E$", "a.b", true},
        {"^\\Qa.b\\E$", "axb", false},
        {"^\\Qa(", "a(", true},
        {"^a\\Q\\E*$", "aaa", true},
        {"^a*\\Q\\E*$", "aaa", true},
        {"\\x41\\x{42}", "AB", true},
        {"\\x{10FFFF}", "\xf4\x8f\xbf\xbf", true},
        {"\\101\\07", "A\a", true},
        {"\\_\\-\\/", "_-/", true},
        {"^\\a\\f\\t\\v\\r$", "\a\f\t\v\r", true},
        {"^a{,2}$", "a{,2}", true},
        {"^a{2$", "a{2", true},
        {"^a{2,3}$", "aaaa", false},
        {"^a{02}$", "a{02}", true},
        {"(?P<n>a)(?P<m>b)", "ab", true},
        {"(?U)^a+?$", "aaa", true},
        {"#(?:)a b", "#a b", true},
        {"()*(|a)+$", "", true},
        {"\xd1\x8f+", "\xd1\x8f", true},
        {"x{0}y", "y", true},
    };

    EXPECT_MATCHES(cases);
}

/* As in Go: each such byte is U+FFFD. */
static void
bytes_that_are_not_utf8_are_matched(void **state)
{
    static const struct match cases[] = {
        {"main", "\xff\xfemain", true},
        {"^..main$", "\xff\xfemain", true},
        {"^\\x{fffd}$", "\xc3", true},
        {"^...$", "\xed\xa0\x80", true},
        {"^[^a]$", "\xff", true},
        {"^a.b$",
         "a\xe2\x84"
         "b",
         false},
        {"^\\w$", "\xff", false},
    };

    EXPECT_MATCHES(cases);
}

/* ------------------------------------------------------------- errors ---- */

static void
what_re2_refuses_is_refused_in_its_words(void **state)
{
    static const char *const cases[][2] = {
        {"(", "missing closing ): `(`"},
        {"a)", "unexpected ): `a)`"},
        {"x[a", "missing closing ]: `[a`"},
        {"[z-a]", "invalid character class range: `z-a`"},
        {"[[:foo:]]", "invalid character class range: `[:foo:]`"},
        {"\\p{Foo}x", "invalid character class range: `\\p{Foo}`"},
        {"\\p{lu}", "invalid character class range: `\\p{lu}`"},
        {"\\p{L&}", "invalid character class range: `\\p{L&}`"},
        {"\\p{Xan}", "invalid character class range: `\\p{Xan}`"},
        {"a**", "invalid nested repetition operator: `**`"},
        {"a++", "invalid nested repetition operator: `++`"},
        {"a{2}{3}", "invalid nested repetition operator: `{2}{3}`"},
        {"a|*", "missing argument to repetition operator: `*`"},
        {"a{1001}", "invalid repeat count: `{1001}`"},
        {"a{2,1}", "invalid repeat count: `{2,1}`"},
        {"(a{100}){11}", "invalid repeat count: `{11}`"},
        {"a\\", "trailing backslash at end of expression: ``"},
        {"\\x{110000}", "invalid escape sequence: `\\x{110000`"},
        {"(?P<a b>c)", "invalid named capture: `(?P<a b>`"},
        {"\xff", "invalid UTF-8: `\xff`"},
        {"a\xff(", "invalid UTF-8: `\xff(`"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof_error error = {0};
        struct cpprof__regexp *r = NULL;
        char text[200];

        snprintf(text, sizeof text,
                 "parsing focus regexp: error parsing regexp: %s", cases[i][1]);
        assert_int_equal(cpprof__regexp_make(cases[i][0], "focus", &r, &error),
                         CPPROF_BAD_DATA);
        assert_null(r);
        assert_string_equal(error.text, text);
    }
}

/* Recursion, callouts, verbs that lift limits, look-around, back references. */
static void
what_only_perl_knows_is_refused(void **state)
{
    static const char *const cases[] = {
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a)",
        "(?R)",
        "(?1)(a)",
        "(?C)",
        "(?C1)a",
        "(?#x)",
        "(?|a)",
        "(?x) a",
        "(?&n)",
        "(?P=n)",
        "(?P>n)",
        "(*UCP)",
        "(*ACCEPT)",
        "(*NO_JIT)a",
        "(*LIMIT_MATCH=100000000)a",
        "a*+",
        "a{2}+",
        "(a)\\1",
        "\\k<n>",
        "\\g1",
        "\\K",
        "\\G",
        "\\Z",
        "\\h",
        "\\R",
        "\\X",
        "\\N",
        "\\e",
        "\\cA",
        "\\o{1}",
        "[\\b]",
        "\\E",
        "(?'n'a)",
        "(?J)a",
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof__regexp *r = NULL;

        if (cpprof__regexp_make(cases[i], "x", &r, NULL) != CPPROF_BAD_DATA)
            fail_msg("%s", cases[i]);
    }
}

/* ------------------------------------------------------------- limits ---- */

static void
expression_too_large_is_refused_however_it_nests(void **state)
{
    static char deep[60002], large[4 << 20];
    struct cpprof_error error = {0};
    struct cpprof__regexp *r = NULL;

    memset(deep, '(', 30000);
    deep[30000] = 'a';
    memset(deep + 30001, ')', 30000);
    assert_int_equal(cpprof__regexp_make(deep, "x", &r, NULL), CPPROF_OK);
    assert_true(cpprof__regexp_matches(r, "ba", 2));
    assert_false(cpprof__regexp_matches(r, "bb", 2));
    cpprof__regexp_free(r);
    memset(large, 'a', sizeof large - 1);
    assert_int_equal(cpprof__regexp_make(large, "x", &r, &error),
                     CPPROF_BAD_DATA);
    assert_non_null(strstr(error.text, "expression too large"));
    assert_int_equal(
        cpprof__regexp_make("(\\pL{100}x{800}){9}|(a{30}b{31}){31}", "x", &r,
                            &error),
        CPPROF_BAD_DATA);
}

/* Each would take for ever where a matcher goes back. */
static void
expression_with_many_ways_is_answered_for_each_name(void **state)
{
    static const struct {
        const char *expression;
        bool matches;
    } cases[] = {{"(a*)*[bc]", false},
                 {"(a|a)*[cd]", false},
                 {"^(a|b|ab)*[cd]$", false},
                 {"(.*)(.*)(.*)(.*)(.*)[xy]", false},
                 {"^(a+)+$", true}};
    static char text[10000];
    size_t i, j;

    memset(text, 'a', sizeof text);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof__regexp *r = NULL;

        assert_int_equal(
            cpprof__regexp_make(cases[i].expression, "focus", &r, NULL),
            CPPROF_OK);
        for (j = 0; j < 100; j++)
            assert_int_equal(cpprof__regexp_matches(r, text, sizeof text - j),
                             cases[i].matches);
        assert_int_equal(cpprof__regexp_status(r, NULL), CPPROF_OK);
        cpprof__regexp_free(r);
    }
}

static void
long_text_matches_wherever_it_begins(void **state)
{
    static char text[5000];
    struct cpprof__regexp *r = NULL;

    memset(text, 'x', sizeof text);
    memcpy(text + 3000, "f\xc3\xbc", 3);
    assert_int_equal(cpprof__regexp_make("f\xc3\xbcx+$", "focus", &r, NULL),
                     CPPROF_OK);
    assert_true(cpprof__regexp_matches(r, text, sizeof text));
    assert_false(cpprof__regexp_matches(r, text, 2000));
    cpprof__regexp_free(r);
    assert_int_equal(cpprof__regexp_make("^f", "focus", &r, NULL), CPPROF_OK);
    assert_false(cpprof__regexp_matches(r, text, sizeof text));
    cpprof__regexp_free(r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anchors_match_at_the_very_ends),
        cmocka_unit_test(classes_are_those_of_re2),
        cmocka_unit_test(case_is_folded_as_in_re2),
        cmocka_unit_test(escapes_and_literals_are_those_of_re2),
        cmocka_unit_test(bytes_that_are_not_utf8_are_matched),
        cmocka_unit_test(what_re2_refuses_is_refused_in_its_words),
        cmocka_unit_test(what_only_perl_knows_is_refused),
        cmocka_unit_test(expression_too_large_is_refused_however_it_nests),
        cmocka_unit_test(expression_with_many_ways_is_answered_for_each_name),
        cmocka_unit_test(long_text_matches_wherever_it_begins),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
