/* SPDX-License-Identifier: MIT */
/*
 * Buffers: what is appended stays, and failure is sticky.
 */
#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
append_grows_and_keeps_what_was_there(void **state)
{
    struct cpprof__buffer b = {0};
    uint32_t i, v;

    (void)state;
    for (i = 0; i < 10000; i++)
        cpprof__buffer_append(&b, &i, sizeof i);
    assert_false(b.failed);
    assert_int_equal(b.n, 10000 * sizeof i);
    assert_true(b.capacity >= b.n);
    for (i = 0; i < 10000; i++) {
        memcpy(&v, b.data + i * sizeof v, sizeof v);
        assert_int_equal(v, i);
    }
    cpprof__buffer_free(&b);
    assert_null(b.data);
    assert_int_equal(b.n, 0);
}

static void
append_of_nothing_changes_nothing(void **state)
{
    struct cpprof__buffer b = {0};

    (void)state;
    cpprof__buffer_append(&b, NULL, 0);
    assert_null(b.data);
    assert_false(b.failed);
}

static void
failure_is_sticky_and_leaves_an_empty_buffer(void **state)
{
    struct cpprof__buffer b = {0};

    (void)state;
    cpprof__buffer_append(&b, "abc", 3);
    assert_false(cpprof__buffer_reserve(&b, SIZE_MAX - 1));
    assert_true(b.failed);
    assert_int_equal(b.n, 0);
    assert_null(b.data);
    cpprof__buffer_append(&b, "abc", 3);
    cpprof__buffer_printf(&b, "%d", 1);
    assert_int_equal(b.n, 0);
    assert_false(cpprof__buffer_reserve(&b, 1));
    cpprof__buffer_free(&b);
    assert_false(b.failed);
}

static void
reserve_of_what_is_there_does_not_move(void **state)
{
    struct cpprof__buffer b = {0};
    uint8_t *data;

    (void)state;
    assert_true(cpprof__buffer_reserve(&b, 1000));
    data = b.data;
    assert_true(cpprof__buffer_reserve(&b, 1000));
    assert_ptr_equal(b.data, data);
    assert_int_equal(b.n, 0);
    cpprof__buffer_free(&b);
}

static void
printf_appends_any_length_without_a_terminator(void **state)
{
    struct cpprof__buffer b = {0};
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    cpprof__buffer_printf(&b, "%d-", 42);
    cpprof__buffer_printf(&b, "%s", "");
    cpprof__buffer_printf(&b, "%s", text);
    assert_int_equal(b.n, 3 + sizeof text - 1);
    assert_memory_equal(b.data, "42-x", 4);
    assert_int_equal(b.data[b.n - 1], 'x');
    cpprof__buffer_free(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_grows_and_keeps_what_was_there),
        cmocka_unit_test(append_of_nothing_changes_nothing),
        cmocka_unit_test(failure_is_sticky_and_leaves_an_empty_buffer),
        cmocka_unit_test(reserve_of_what_is_there_does_not_move),
        cmocka_unit_test(printf_appends_any_length_without_a_terminator),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
