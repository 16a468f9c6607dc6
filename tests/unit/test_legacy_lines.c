/* SPDX-License-Identifier: MIT */
/* Lines of text and the addresses in them. */
#include "profile/legacy/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct cpprof__text
text(const char *s)
{
    return (struct cpprof__text){s, strlen(s)};
}

static void
assert_text(struct cpprof__text got, const char *want)
{
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.at, want, got.n);
}

static void
assert_lines(const char *input, const char *const *want)
{
    struct cpprof__legacy_lines lines = {input, input + strlen(input)};
    struct cpprof__text line;

    for (; *want; want++) {
        assert_true(cpprof__next_line(&lines, &line));
        assert_text(line, *want);
    }
    assert_false(cpprof__next_line(&lines, &line));
}

static void
lines_end_with_newline_or_input(void **state)
{
    (void)state;
    assert_lines("", (const char *[]){NULL});
    assert_lines("a", (const char *[]){"a", NULL});
    assert_lines("a\n", (const char *[]){"a", NULL});
    assert_lines("a\n\nb", (const char *[]){"a", "", "b", NULL});
    assert_lines("\n", (const char *[]){"", NULL});
}

static void
one_carriage_return_before_the_end_goes(void **state)
{
    (void)state;
    assert_lines("a\r\nb\r\r\n\r", (const char *[]){"a", "b\r", "", NULL});
    assert_lines("a\rb\n", (const char *[]){"a\rb", NULL});
}

static void
trim_takes_white_space_at_both_ends_only(void **state)
{
    (void)state;
    assert_text(cpprof__trim(text(" \t\v a b\r\n")), "a b");
    assert_text(cpprof__trim(text("  \t")), "");
    assert_text(cpprof__trim(text("")), "");
}

static void
comments_begin_with_a_hash_behind_white_space(void **state)
{
    (void)state;
    assert_true(cpprof__is_space_or_comment(text("")));
    assert_true(cpprof__is_space_or_comment(text(" \t")));
    assert_true(cpprof__is_space_or_comment(text("  # 0x10")));
    assert_false(cpprof__is_space_or_comment(text("1 # 0x10")));
}

static void
sentinels_may_stand_anywhere(void **state)
{
    (void)state;
    assert_true(cpprof__is_maps_sentinel(text("MAPPED_LIBRARIES:")));
    assert_true(cpprof__is_maps_sentinel(text("x --- Memory map: --- y")));
    assert_false(cpprof__is_maps_sentinel(text("MAPPED_LIBRARIES")));
    assert_true(cpprof__begins(text("--- heap"), "---"));
    assert_false(cpprof__begins(text("--"), "---"));
}

static void
assert_addresses(const char *input, const uint64_t *want, size_t n)
{
    struct cpprof__legacy_addresses got = {0};
    struct cpprof__text failed_at;

    assert_true(cpprof__hex_addresses(text(input), &got, &failed_at));
    assert_false(got.nomem);
    assert_int_equal(got.list.n, n);
    if (n)
        assert_memory_equal(got.list.at, want, n * sizeof *want);
    CPPROF__ARRAY_FREE(&got.list);
}

static void
addresses_are_found_in_any_text(void **state)
{
    (void)state;
    assert_addresses("", NULL, 0);
    assert_addresses("0x", NULL, 0);
    assert_addresses("x12 12 0xG 0X12 0xA", NULL, 0);
    assert_addresses(" @ 0x1 0xabc,0xff]", (uint64_t[]){1, 0xabc, 0xff}, 3);
    assert_addresses("00x1 0x0x12 0xabC", (uint64_t[]){1, 0, 0xab}, 3);
    assert_addresses("0xffffffffffffffff", (uint64_t[]){UINT64_MAX}, 1);
    assert_addresses("0x00000000000000000000001", (uint64_t[]){1}, 1);
}

static void
address_of_more_than_64_bits_fails_and_is_shown(void **state)
{
    struct cpprof__legacy_addresses got = {0};
    struct cpprof__text failed_at = {0};

    (void)state;
    assert_false(cpprof__hex_addresses(text("0x1 0x10000000000000000 0x2"),
                                       &got, &failed_at));
    assert_text(failed_at, "0x10000000000000000");
    CPPROF__ARRAY_FREE(&got.list);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_with_newline_or_input),
        cmocka_unit_test(one_carriage_return_before_the_end_goes),
        cmocka_unit_test(trim_takes_white_space_at_both_ends_only),
        cmocka_unit_test(comments_begin_with_a_hash_behind_white_space),
        cmocka_unit_test(sentinels_may_stand_anywhere),
        cmocka_unit_test(addresses_are_found_in_any_text),
        cmocka_unit_test(address_of_more_than_64_bits_fails_and_is_shown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
