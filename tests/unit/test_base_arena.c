/* SPDX-License-Identifier: MIT */
/*
 * Arenas: alignment, growth, and sizes that cannot be.
 */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
objects_are_aligned_after_texts_of_any_length(void **state)
{
    struct cpprof__arena arena = {0};
    size_t i;

    (void)state;
    for (i = 0; i < 200; i++) {
        char *text = cpprof__arena_copy(&arena, "0123456789", i % 11);
        void *object = cpprof__arena_alloc(&arena, 24);

        assert_non_null(text);
        assert_non_null(object);
        assert_int_equal((uintptr_t)object % 16, 0);
        memset(object, 0xaa, 24);
        assert_int_equal(strlen(text), i % 11);
    }
    cpprof__arena_free(&arena);
}

static void
pointers_stay_valid_while_the_arena_grows(void **state)
{
    struct cpprof__arena arena = {0};
    const char *texts[20000];
    char text[32];
    int i, n;

    (void)state;
    for (i = 0; i < 20000; i++) {
        n = snprintf(text, sizeof text, "text %d", i);
        texts[i] = cpprof__arena_copy(&arena, text, (size_t)n);
        assert_non_null(texts[i]);
    }
    for (i = 0; i < 20000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        assert_string_equal(texts[i], text);
    }
    assert_in_range(arena.n_bytes, 20000 * 8, 20000 * 40);
    cpprof__arena_free(&arena);
    assert_int_equal(arena.n_bytes, 0);
}

static void
one_object_may_be_larger_than_any_chunk(void **state)
{
    struct cpprof__arena arena = {0};
    size_t n = 5 * 1024 * 1024;
    char *large, *small;

    (void)state;
    large = cpprof__arena_alloc(&arena, n);
    assert_non_null(large);
    memset(large, 1, n);
    small = cpprof__arena_copy(&arena, "small", 5);
    assert_string_equal(small, "small");
    assert_int_equal(large[n - 1], 1);
    cpprof__arena_free(&arena);
}

static void
no_bytes_are_not_out_of_memory(void **state)
{
    struct cpprof__arena arena = {0};

    (void)state;
    assert_non_null(cpprof__arena_alloc(&arena, 0));
    assert_string_equal(cpprof__arena_copy(&arena, NULL, 0), "");
    cpprof__arena_free(&arena);
}

static void
impossible_sizes_are_refused(void **state)
{
    struct cpprof__arena arena = {0};

    (void)state;
    assert_null(cpprof__arena_alloc(&arena, SIZE_MAX));
    assert_null(cpprof__arena_alloc(&arena, SIZE_MAX / 2 + 1));
    assert_null(cpprof__arena_copy(&arena, "x", SIZE_MAX));
    assert_string_equal(cpprof__arena_copy(&arena, "x", 1), "x");
    cpprof__arena_free(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_aligned_after_texts_of_any_length),
        cmocka_unit_test(pointers_stay_valid_while_the_arena_grows),
        cmocka_unit_test(one_object_may_be_larger_than_any_chunk),
        cmocka_unit_test(no_bytes_are_not_out_of_memory),
        cmocka_unit_test(impossible_sizes_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
