/* SPDX-License-Identifier: MIT */
/*
 * Packing and unpacking: members, damage at every byte, and bombs.
 */
#include "base/gzip.h"
#include "profile/gunzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NO_LIMIT (1u << 30)

/* Bytes that compress, but not to nothing. */
static void
fill(uint8_t *data, size_t n)
{
    uint32_t x = 1;
    size_t i;

    for (i = 0; i < n; i++) {
        x = x * 1103515245 + 12345;
        data[i] = (uint8_t)(x >> 24 & 15);
    }
}

static void
pack(struct cpprof__buffer *out, const void *data, size_t n, int level)
{
    struct cpprof_error error;

    assert_int_equal(cpprof__gzip(out, data, n, level, &error), CPPROF_OK);
}

static void
what_is_packed_unpacks_to_itself(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 100, 65536, 1000003};
    static uint8_t data[1000003];
    size_t i;
    int level;

    (void)state;
    fill(data, sizeof data);
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (level = 1; level <= 12; level += 5) {
            struct cpprof__buffer packed = {0}, out = {0};
            struct cpprof_error error;

            pack(&packed, data, sizes[i], level);
            assert_true(cpprof__is_gzip(packed.data, packed.n));
            assert_int_equal(
                cpprof__gunzip(&out, packed.data, packed.n, NO_LIMIT, &error),
                CPPROF_OK);
            assert_int_equal(out.n, sizes[i]);
            if (out.n)
                assert_memory_equal(out.data, data, out.n);
            cpprof__buffer_free(&packed);
            cpprof__buffer_free(&out);
        }
    }
}

static void
members_in_a_row_are_one_stream(void **state)
{
    static const size_t sizes[] = {100000, 0, 1, 1, 150000, 50, 49948};
    struct cpprof__buffer packed = {0}, out = {0};
    static uint8_t data[300000];
    struct cpprof_error error;
    size_t at = 0, i;

    (void)state;
    fill(data, sizeof data);
    for (i = 0; i < sizeof sizes / sizeof *sizes; at += sizes[i++])
        pack(&packed, data + at, sizes[i], 1);
    assert_int_equal(at, sizeof data);
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, NO_LIMIT, &error),
        CPPROF_OK);
    assert_int_equal(out.n, sizeof data);
    assert_memory_equal(out.data, data, out.n);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

static void
output_is_appended_to_what_is_there(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    struct cpprof_error error;

    (void)state;
    pack(&packed, "def", 3, 1);
    cpprof__buffer_append(&out, "abc", 3);
    assert_int_equal(cpprof__gunzip(&out, packed.data, packed.n, 6, &error),
                     CPPROF_OK);
    assert_int_equal(out.n, 6);
    assert_memory_equal(out.data, "abcdef", 6);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

static void
every_truncation_is_bad_data(void **state)
{
    struct cpprof__buffer packed = {0};
    uint8_t data[500];
    size_t n;

    (void)state;
    fill(data, sizeof data);
    pack(&packed, data, sizeof data, 6);
    for (n = 0; n < packed.n; n++) {
        struct cpprof__buffer out = {0};
        struct cpprof_error error;
        /* exact copy, so that a sanitizer sees a read behind the end */
        uint8_t *copy = malloc(n ? n : 1);

        assert_non_null(copy);
        memcpy(copy, packed.data, n);
        assert_int_equal(cpprof__gunzip(&out, copy, n, NO_LIMIT, &error),
                         CPPROF_BAD_DATA);
        assert_string_equal(error.text, "gzip: damaged or cut short");
        free(copy);
        cpprof__buffer_free(&out);
    }
    cpprof__buffer_free(&packed);
}

static void
every_flipped_byte_is_bad_data_or_harmless(void **state)
{
    struct cpprof__buffer packed = {0};
    uint8_t data[500];
    size_t i, n_bad = 0;

    (void)state;
    fill(data, sizeof data);
    pack(&packed, data, sizeof data, 6);
    for (i = 0; i < packed.n; i++) {
        struct cpprof__buffer out = {0};
        struct cpprof_error error;

        packed.data[i] ^= 0xff;
        if (cpprof__gunzip(&out, packed.data, packed.n, NO_LIMIT, &error))
            n_bad++;
        else /* time, flags for fun and origin system mean nothing */
            assert_memory_equal(out.data, data, sizeof data);
        packed.data[i] ^= 0xff;
        cpprof__buffer_free(&out);
    }
    assert_true(n_bad >= packed.n - 6);
    cpprof__buffer_free(&packed);
}

static void
a_bomb_is_refused_before_the_memory_is_taken(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    size_t n = 64 << 20, limit = 1 << 20;
    uint8_t *zeros = calloc(1, n);
    struct cpprof_error error;

    (void)state;
    assert_non_null(zeros);
    pack(&packed, zeros, n, 6);
    assert_true(packed.n < 100000);
    assert_int_equal(cpprof__gunzip(&out, packed.data, packed.n, limit, &error),
                     CPPROF_LIMIT);
    assert_string_equal(error.text, "gzip: unpacks to more than 1048576 bytes");
    assert_true(out.capacity <= 2 * limit);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
    free(zeros);
}

/* 64 MiB of zeros, packed to 64 KiB. */
#define BOMB_BYTES ((size_t)64 << 20)

static void
make_bomb(struct cpprof__buffer *packed)
{
    uint8_t *zeros = calloc(1, BOMB_BYTES);

    assert_non_null(zeros);
    pack(packed, zeros, BOMB_BYTES, 6);
    free(zeros);
    assert_true(packed->n < 100000);
}

static void
a_bomb_is_counted_before_any_memory_is_taken(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    struct cpprof_error error;

    (void)state;
    make_bomb(&packed);
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, BOMB_BYTES - 1, &error),
        CPPROF_LIMIT);
    assert_string_equal(error.text,
                        "gzip: unpacks to more than 67108863 bytes");
    assert_int_equal(out.capacity, 0);
    /* What is within the limit is no bomb, however small it was. */
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, BOMB_BYTES, &error),
        CPPROF_OK);
    assert_int_equal(out.n, BOMB_BYTES);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

static void
a_bomb_that_lies_about_its_size_is_refused_in_little_memory(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    struct cpprof_error error;

    (void)state;
    make_bomb(&packed);
    memset(packed.data + packed.n - 4, 0, 4);
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, BOMB_BYTES - 1, &error),
        CPPROF_LIMIT);
    assert_true(out.capacity <= 16 << 20);
    cpprof__buffer_free(&out);
    /* Cut short, it has no end to count to. */
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n / 2, BOMB_BYTES, &error),
        CPPROF_BAD_DATA);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

static void
what_a_member_unpacks_to_is_counted_without_it(void **state)
{
    static uint8_t data[300000];
    size_t n, size;
    int level;

    (void)state;
    fill(data, sizeof data / 2); /* zeros behind it: long matches */
    for (level = 1; level <= 12; level++) {
        for (n = 0; n <= sizeof data; n = n * 3 + 1) {
            struct cpprof__buffer packed = {0};

            pack(&packed, data, n, level);
            assert_int_equal(cpprof__gzip_size(packed.data, packed.n, n, &size),
                             CPPROF_OK);
            assert_int_equal(size, n);
            /* Enough is known earlier. */
            if (n)
                assert_int_equal(
                    cpprof__gzip_size(packed.data, packed.n, n / 2, &size),
                    CPPROF_OK);
            assert_true(n == 0 || size > n / 2);
            /* Not even its tail. */
            assert_int_equal(
                cpprof__gzip_size(packed.data, 17, SIZE_MAX, &size),
                CPPROF_BAD_DATA);
            cpprof__buffer_free(&packed);
        }
    }
}

/* All fields that a head may have, then a stored block of 5 bytes. */
static void
a_head_with_all_fields_is_skipped(void **state)
{
    static const uint8_t member[] =
        "\x1f\x8b\x08\x1e\0\0\0\0\0\3" /* FHCRC FEXTRA FNAME FCOMMENT */
        "\2\0xy"
        "name\0"
        "comment\0"
        "\1\177"              /* the fields */
        "\1\5\0\xfa\xffhello" /* the block */
        "\206\246\20\66"
        "\5\0\0\0"; /* the tail */
    size_t n = sizeof member - 1, size = 0, cut;

    (void)state;
    assert_int_equal(cpprof__gzip_size(member, n, SIZE_MAX, &size), CPPROF_OK);
    assert_int_equal(size, 5);
    for (cut = 1; cut <= n; cut++)
        assert_int_equal(cpprof__gzip_size(member, n - cut, SIZE_MAX, &size),
                         CPPROF_BAD_DATA);
}

static void
a_bomb_of_many_members_is_refused(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    static const uint8_t zeros[4096];
    struct cpprof_error error;
    int i;

    (void)state;
    for (i = 0; i < 300; i++)
        pack(&packed, zeros, sizeof zeros, 6);
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, 1 << 20, &error),
        CPPROF_LIMIT);
    assert_true(out.capacity <= 2 << 20);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

static void
the_limit_itself_is_allowed(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    struct cpprof_error error;
    uint8_t data[1000];

    (void)state;
    fill(data, sizeof data);
    pack(&packed, data, sizeof data, 1);
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, sizeof data, &error),
        CPPROF_OK);
    out.n = 0;
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, sizeof data - 1, &error),
        CPPROF_LIMIT);
    /* More is there already than may ever be: nothing is added to it. */
    out.n = 600;
    assert_int_equal(cpprof__gunzip(&out, packed.data, packed.n, 500, &error),
                     CPPROF_LIMIT);
    assert_int_equal(out.n, 600);
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

static void
garbage_behind_a_member_is_bad_data_at_its_offset(void **state)
{
    struct cpprof__buffer packed = {0}, out = {0};
    struct cpprof_error error;
    size_t n;

    (void)state;
    pack(&packed, "abc", 3, 1);
    n = packed.n;
    cpprof__buffer_append(&packed, "this is no gzip member at all", 29);
    assert_int_equal(
        cpprof__gunzip(&out, packed.data, packed.n, NO_LIMIT, &error),
        CPPROF_BAD_DATA);
    assert_int_equal(error.offset, n);
    assert_false(cpprof__is_gzip("\x1f", 1));
    assert_false(cpprof__is_gzip(NULL, 0));
    cpprof__buffer_free(&packed);
    cpprof__buffer_free(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_unpacks_to_itself),
        cmocka_unit_test(members_in_a_row_are_one_stream),
        cmocka_unit_test(output_is_appended_to_what_is_there),
        cmocka_unit_test(every_truncation_is_bad_data),
        cmocka_unit_test(every_flipped_byte_is_bad_data_or_harmless),
        cmocka_unit_test(a_bomb_is_refused_before_the_memory_is_taken),
        cmocka_unit_test(a_bomb_is_counted_before_any_memory_is_taken),
        cmocka_unit_test(
            a_bomb_that_lies_about_its_size_is_refused_in_little_memory),
        cmocka_unit_test(what_a_member_unpacks_to_is_counted_without_it),
        cmocka_unit_test(a_head_with_all_fields_is_skipped),
        cmocka_unit_test(a_bomb_of_many_members_is_refused),
        cmocka_unit_test(the_limit_itself_is_allowed),
        cmocka_unit_test(garbage_behind_a_member_is_bad_data_at_its_offset),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
