/* SPDX-License-Identifier: MIT */
/* Option structs of callers that were built with another version. */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct old {
    size_t size;
    int64_t a;
};

struct now {
    size_t size;
    int64_t a, b;
};

struct later {
    size_t size;
    int64_t a, b, c;
};

static enum cpprof_status
take(struct now *options, const void *given, struct cpprof_error *error)
{
    *options = (struct now){sizeof *options, 1, 2};
    return cpprof__options(options, sizeof *options, given, "options", error);
}

static void
none_leaves_the_defaults(void **state)
{
    struct now options;

    (void)state;
    assert_int_equal(take(&options, NULL, NULL), CPPROF_OK);
    assert_int_equal(options.a, 1);
    assert_int_equal(options.b, 2);
}

static void
shorter_one_leaves_the_rest_at_its_defaults(void **state)
{
    struct old given = {sizeof given, 7};
    struct now options;

    (void)state;
    assert_int_equal(take(&options, &given, NULL), CPPROF_OK);
    assert_int_equal(options.size, sizeof options);
    assert_int_equal(options.a, 7);
    assert_int_equal(options.b, 2);
}

static void
longer_one_is_taken_when_its_tail_is_zero(void **state)
{
    struct later given = {sizeof given, 7, 8, 0};
    struct cpprof_error error;
    struct now options;

    (void)state;
    assert_int_equal(take(&options, &given, NULL), CPPROF_OK);
    assert_int_equal(options.a, 7);
    assert_int_equal(options.b, 8);
    given.c = 1;
    assert_int_equal(take(&options, &given, &error), CPPROF_INVALID);
    assert_string_equal(error.text, "options of 32 bytes, not 24");
    assert_int_equal(options.a, 1);
}

static void
impossible_size_is_refused(void **state)
{
    struct now given = {0, 7, 8}, options;

    (void)state;
    assert_int_equal(take(&options, &given, NULL), CPPROF_INVALID);
    given.size = 7;
    assert_int_equal(take(&options, &given, NULL), CPPROF_INVALID);
    given.size = SIZE_MAX;
    assert_int_equal(take(&options, &given, NULL), CPPROF_INVALID);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_leaves_the_defaults),
        cmocka_unit_test(shorter_one_leaves_the_rest_at_its_defaults),
        cmocka_unit_test(longer_one_is_taken_when_its_tail_is_zero),
        cmocka_unit_test(impossible_size_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
