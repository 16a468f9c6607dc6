/* SPDX-License-Identifier: MIT */
/*
 * The wire format of protocol buffers: round trips, truncation, hostile bytes.
 */
#include "base/proto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
varint_of_every_width_reads_back(void **state)
{
    unsigned bits;

    (void)state;
    for (bits = 0; bits <= 64; bits++) {
        uint64_t v = bits == 64 ? UINT64_MAX : (1ull << bits) - (bits & 1);
        struct cpprof__buffer b = {0};
        struct cpprof__reader r;

        cpprof__put_varint(&b, v);
        assert_in_range(b.n, 1, 10);
        r = cpprof__reader(b.data, b.n);
        assert_true(cpprof__read_varint(&r) == v);
        assert_false(r.bad);
        assert_int_equal(cpprof__reader_left(&r), 0);
        cpprof__buffer_free(&b);
    }
}

static void
varint_of_eleven_bytes_is_bad(void **state)
{
    static const uint8_t bytes[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                    0x80, 0x80, 0x80, 0x80, 0x01};
    struct cpprof__reader r = cpprof__reader(bytes, sizeof bytes);

    (void)state;
    assert_true(cpprof__read_varint(&r) == 0);
    assert_true(r.bad);
    assert_int_equal(cpprof__reader_left(&r), 0);
    r = cpprof__reader(bytes + 1, sizeof bytes - 1);
    assert_true(cpprof__read_varint(&r) == 1ull << 63);
    assert_false(r.bad);
}

static void
reader_is_sticky_after_a_read_past_the_end(void **state)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7};
    struct cpprof__reader r = cpprof__reader(bytes, sizeof bytes);

    (void)state;
    assert_int_equal(cpprof__read_u8(&r), 1);
    assert_int_equal(cpprof__read_u16(&r), 0x0302);
    assert_int_equal(cpprof__read_u32(&r), 0x07060504);
    assert_false(r.bad);
    assert_int_equal(cpprof__read_u8(&r), 0);
    assert_true(r.bad);
    r = cpprof__reader(bytes, sizeof bytes);
    assert_true(cpprof__read_u64(&r) == 0);
    assert_true(r.bad);
    assert_int_equal(cpprof__read_u8(&r), 0);
    assert_null(cpprof__read_bytes(&r, 0));
    r = cpprof__reader(NULL, 0);
    assert_int_equal(cpprof__reader_left(&r), 0);
    assert_null(cpprof__read_bytes(&r, SIZE_MAX));
    assert_true(r.bad);
}

/* One field of every kind, and a message in a message. */
static void
put_message(struct cpprof__buffer *b)
{
    static const uint64_t three[] = {1, 300, UINT64_MAX};
    size_t outer, inner;

    cpprof__put_uint(b, 1, 0);
    cpprof__put_uint_opt(b, 2, 0);
    cpprof__put_uint_opt(b, 2, 77);
    cpprof__put_bytes(b, 3, "text", 4);
    cpprof__put_uints(b, 4, three, 2);
    cpprof__put_uints(b, 5, three, 3);
    outer = cpprof__put_begin(b);
    cpprof__put_uint(b, 1, 1);
    inner = cpprof__put_begin(b);
    cpprof__put_bytes(b, 1, "deep", 4);
    cpprof__put_end(b, 2, inner);
    cpprof__put_end(b, 600, outer);
    cpprof__buffer_append(b, "\x39\1\2\3\4\5\6\7\x8", 9); /* 7: fixed64 */
    cpprof__buffer_append(b, "\x45\1\2\3\4", 5);          /* 8: fixed32 */
}

/* What put_message() wrote, as text. */
static void
describe(struct cpprof__reader r, char *text, size_t n_text)
{
    struct cpprof__field f;
    const char *error;
    size_t n = 0;

    *text = 0;
    while (cpprof__proto_next(&r, &f, &error)) {
        n += (size_t)snprintf(text + n, n_text - n, "%u/%d=", f.number, f.wire);
        if (f.wire == CPPROF__WIRE_BYTES)
            n += (size_t)snprintf(text + n, n_text - n, "[%zu] ", f.n);
        else
            n += (size_t)snprintf(text + n, n_text - n, "%llu ",
                                  (unsigned long long)f.value);
    }
    if (error)
        snprintf(text + n, n_text - n, "%s", error);
}

static void
fields_read_back_as_they_were_written(void **state)
{
    struct cpprof__buffer b = {0};
    char text[400];

    (void)state;
    put_message(&b);
    describe(cpprof__reader(b.data, b.n), text, sizeof text);
    assert_string_equal(text, "1/0=0 2/0=77 3/2=[4] 4/0=1 4/0=300 5/2=[13] "
                              "600/2=[10] 7/1=578437695752307201 "
                              "8/5=67305985 ");
    cpprof__buffer_free(&b);
}

static void
nested_message_reads_back(void **state)
{
    struct cpprof__buffer b = {0};
    struct cpprof__reader r;
    struct cpprof__field f = {0};
    const char *error;

    (void)state;
    put_message(&b);
    r = cpprof__reader(b.data, b.n);
    while (f.number != 600)
        assert_true(cpprof__proto_next(&r, &f, &error));
    r = cpprof__reader(f.data, f.n);
    assert_true(cpprof__proto_next(&r, &f, &error));
    assert_int_equal(f.value, 1);
    assert_true(cpprof__proto_next(&r, &f, &error));
    r = cpprof__reader(f.data, f.n);
    assert_true(cpprof__proto_next(&r, &f, &error));
    assert_memory_equal(f.data, "deep", 4);
    assert_false(cpprof__proto_next(&r, &f, &error));
    assert_null(error);
    cpprof__buffer_free(&b);
}

static void
truncation_at_every_byte_is_an_error_or_a_shorter_message(void **state)
{
    struct cpprof__buffer b = {0};
    size_t n, n_whole = 0;

    (void)state;
    put_message(&b);
    for (n = 0; n < b.n; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        struct cpprof__field f;
        struct cpprof__reader r;
        const char *error;

        assert_non_null(copy);
        memcpy(copy, b.data, n);
        r = cpprof__reader(copy, n);
        while (cpprof__proto_next(&r, &f, &error))
            ;
        assert_true((error != NULL) == r.bad);
        n_whole += error == NULL;
        /* Asked again it says the same. */
        assert_false(cpprof__proto_next(&r, &f, &error));
        assert_true((error != NULL) == r.bad);
        free(copy);
    }
    assert_int_equal(n_whole, 9); /* as many as there are fields */
    cpprof__buffer_free(&b);
}

static void
check_error(const char *bytes, size_t n, const char *want)
{
    struct cpprof__reader r = cpprof__reader(bytes, n);
    struct cpprof__field f;
    const char *error;

    assert_false(cpprof__proto_next(&r, &f, &error));
    assert_non_null(error);
    assert_string_equal(error, want);
    assert_true(r.bad);
}

static void
bad_bytes_are_told_apart(void **state)
{
    (void)state;
    check_error("\x80", 1, "bad varint");
    check_error("\x08\x80", 2, "bad varint");
    check_error("\x09\1\2", 3, "not enough data");
    check_error("\x0d\1\2", 3, "not enough data");
    check_error("\x0a\5ab", 4, "too much data");
    check_error("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11,
                "too much data");
    check_error("\x0b", 1, "unknown wire type");
    check_error("\x0c", 1, "unknown wire type");
    check_error("\x0e", 1, "unknown wire type");
    check_error("\x0f", 1, "unknown wire type");
}

static void
huge_field_number_is_not_that_of_a_small_one(void **state)
{
    struct cpprof__buffer b = {0};
    struct cpprof__field f;
    struct cpprof__reader r;
    const char *error;

    (void)state;
    cpprof__put_varint(&b, ((1ull << 32) + 1) << 3);
    cpprof__put_varint(&b, 5);
    r = cpprof__reader(b.data, b.n);
    assert_true(cpprof__proto_next(&r, &f, &error));
    assert_true(f.number == UINT32_MAX);
    cpprof__buffer_free(&b);
}

static void
failed_buffer_stays_empty_whatever_is_put(void **state)
{
    struct cpprof__buffer b = {0};
    static const uint64_t three[] = {1, 2, 3};
    size_t mark;

    (void)state;
    cpprof__put_uint(&b, 1, 1);
    mark = cpprof__put_begin(&b);
    assert_false(cpprof__buffer_reserve(&b, SIZE_MAX));
    cpprof__put_uint(&b, 1, 1);
    cpprof__put_bytes(&b, 1, "x", 1);
    cpprof__put_uints(&b, 1, three, 3);
    cpprof__put_end(&b, 1, mark);
    assert_int_equal(b.n, 0);
    cpprof__buffer_free(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varint_of_every_width_reads_back),
        cmocka_unit_test(varint_of_eleven_bytes_is_bad),
        cmocka_unit_test(reader_is_sticky_after_a_read_past_the_end),
        cmocka_unit_test(fields_read_back_as_they_were_written),
        cmocka_unit_test(nested_message_reads_back),
        cmocka_unit_test(
            truncation_at_every_byte_is_an_error_or_a_shorter_message),
        cmocka_unit_test(bad_bytes_are_told_apart),
        cmocka_unit_test(huge_field_number_is_not_that_of_a_small_one),
        cmocka_unit_test(failed_buffer_stays_empty_whatever_is_put),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
