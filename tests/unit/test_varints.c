/* SPDX-License-Identifier: MIT */
/*
 * Runs of varints, against the plain decoder.
 */
#include "base/proto.h"
#include "profile/proto/varints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 500

static uint64_t seed;

/* xorshift64: the same numbers in every run. */
static uint64_t
next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* A number of at most `bits` bits, small ones as likely as large ones. */
static uint32_t
random_number(unsigned bits)
{
    return (uint32_t)(next_random() >> (64 - 1 - next_random() % bits));
}

static void
runs_of_any_length_are_decoded(void **state)
{
    uint32_t out[MANY + CPPROF__VARINTS_SLACK], numbers[MANY];
    unsigned bits;
    size_t n, i;

    seed = 88172645463325252ULL;
    for (bits = 1; bits <= 28; bits++)
        for (n = 0; n < MANY; n += 1 + n / 8) {
            struct cpprof__buffer b = {0};
            uint8_t *exact;

            for (i = 0; i < n; i++)
                cpprof__put_varint(&b, numbers[i] = random_number(bits));
            exact = malloc(b.n + 1);
            if (b.n)
                memcpy(exact + 1, b.data, b.n);
            assert_int_equal(cpprof__varints(exact + 1, b.n, out), n);
            for (i = 0; i < n; i++)
                assert_int_equal(out[i], numbers[i]);
            free(exact);
            cpprof__buffer_free(&b);
        }
}

static void
number_beyond_28_bits_is_left_to_the_slow_way(void **state)
{
    static const uint64_t large[] = {1u << 28, UINT32_MAX, UINT64_MAX};
    uint32_t out[16];
    size_t i, before;

    for (i = 0; i < 3; i++)
        for (before = 0; before < 6; before++) {
            struct cpprof__buffer b = {0};
            size_t j;

            for (j = 0; j < before; j++)
                cpprof__put_varint(&b, 5);
            cpprof__put_varint(&b, large[i]);
            assert_int_equal(cpprof__varints(b.data, b.n, out), SIZE_MAX);
            cpprof__put_varint(&b, 5);
            cpprof__put_varint(&b, 300);
            cpprof__put_varint(&b, 300);
            assert_int_equal(cpprof__varints(b.data, b.n, out), SIZE_MAX);
            cpprof__buffer_free(&b);
        }
}

static void
run_that_ends_inside_a_varint_is_refused(void **state)
{
    uint8_t bytes[12];
    uint32_t out[16];
    size_t n;

    memset(bytes, 1, sizeof bytes);
    for (n = 1; n < sizeof bytes; n++) {
        bytes[n - 1] = 0x81;
        assert_int_equal(cpprof__varints(bytes, n, out), SIZE_MAX);
        bytes[n - 1] = 1;
        assert_int_equal(cpprof__varints(bytes, n, out), n);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_any_length_are_decoded),
        cmocka_unit_test(number_beyond_28_bits_is_left_to_the_slow_way),
        cmocka_unit_test(run_that_ends_inside_a_varint_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
