/* SPDX-License-Identifier: MIT */
/*
 * As much of cmocka as the unwinder's tests use, for machines that there is a
 * cross compiler for but no cmocka: TAP, and a failed assertion or skip() ends
 * the case.
 */
#ifndef LITE_CMOCKA_H
#define LITE_CMOCKA_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum cm_message_output { CM_OUTPUT_TAP };

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

static jmp_buf lite_end_of_case;
enum { LITE_PASSED, LITE_FAILED = 1, LITE_SKIPPED };

#define cmocka_unit_test(f)                                                    \
    {                                                                          \
#f, f                                                                  \
    }
#define cmocka_set_message_output(output) ((void)(output))
#define print_message                     printf
#define skip()                            longjmp(lite_end_of_case, LITE_SKIPPED)

static inline void
lite_expect(int holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    printf("# %s:%d: %s\n", file, line, what);
    longjmp(lite_end_of_case, LITE_FAILED);
}

static inline void
lite_expect_equal(uint64_t a, uint64_t b, const char *file, int line)
{
    if (a == b)
        return;
    printf("# %s:%d: %#llx != %#llx\n", file, line, (unsigned long long)a,
           (unsigned long long)b);
    longjmp(lite_end_of_case, LITE_FAILED);
}

static inline void
lite_expect_text(const char *a, const char *b, const char *file, int line)
{
    if (strcmp(a, b) == 0)
        return;
    printf("# %s:%d: \"%s\" != \"%s\"\n", file, line, a, b);
    longjmp(lite_end_of_case, LITE_FAILED);
}

#define assert_true(e)     lite_expect((e) != 0, #e, __FILE__, __LINE__)
#define assert_false(e)    lite_expect((e) == 0, "not " #e, __FILE__, __LINE__)
#define assert_non_null(e) lite_expect((e) != NULL, #e, __FILE__, __LINE__)
#define assert_int_equal(a, b)                                                 \
    lite_expect_equal((uint64_t)(a), (uint64_t)(b), __FILE__, __LINE__)
#define assert_ptr_equal(a, b)                                                 \
    lite_expect((a) == (b), #a " == " #b, __FILE__, __LINE__)
#define assert_string_equal(a, b) lite_expect_text(a, b, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n)                                           \
    lite_expect(memcmp(a, b, n) == 0, #a " == " #b, __FILE__, __LINE__)

static inline int
lite_run(const struct CMUnitTest *tests, size_t n, int (*set_up)(void **))
{
    volatile size_t i;
    volatile int n_failed = 0;
    void *state = NULL;

    setbuf(stdout, NULL);
    printf("1..%zu\n", n);
    if (set_up != NULL)
        set_up(&state);
    for (i = 0; i < n; i++) {
        int result = setjmp(lite_end_of_case);

        if (result == LITE_PASSED)
            tests[i].run(&state);
        n_failed += result == LITE_FAILED;
        printf("%sok %zu - %s%s\n", result == LITE_FAILED ? "not " : "",
               (size_t)i + 1, tests[i].name,
               result == LITE_SKIPPED ? " # SKIP" : "");
    }
    return n_failed;
}

#define cmocka_run_group_tests(tests, set_up, tear_down)                       \
    lite_run(tests, sizeof(tests) / sizeof *(tests), set_up)

#endif
