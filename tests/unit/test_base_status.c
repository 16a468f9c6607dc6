/* SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
every_status_has_its_name_and_text(void **state)
{
    (void)state;
#define X(name, value, text)                                                   \
    assert_string_equal(cpprof_status_name(CPPROF_##name), #name);             \
    assert_string_equal(cpprof_status_text(CPPROF_##name), text);
    CPPROF_STATUS_MAP(X)
#undef X
    assert_string_equal(cpprof_status_name((enum cpprof_status) - 99),
                        "UNKNOWN");
    assert_string_equal(cpprof_status_text((enum cpprof_status)5),
                        "unknown status");
}

static void
failure_fills_the_error_and_returns_its_status(void **state)
{
    struct cpprof_error error;

    (void)state;
    memset(&error, 0xff, sizeof error);
    assert_int_equal(
        cpprof__fail(&error, CPPROF_SYSTEM, 28, "%s: %d", "write", 7),
        CPPROF_SYSTEM);
    assert_int_equal(error.status, CPPROF_SYSTEM);
    assert_int_equal(error.sys, 28);
    assert_int_equal(error.offset, 0);
    assert_string_equal(error.text, "write: 7");
    assert_int_equal(cpprof__fail_at(&error, 99, "bad tag"), CPPROF_BAD_DATA);
    assert_int_equal(error.offset, 99);
    assert_int_equal(error.sys, 0);
    assert_int_equal(cpprof__fail_nomem(&error), CPPROF_NOMEM);
    assert_string_equal(error.text, "out of memory");
}

static void
failure_without_an_error_only_returns(void **state)
{
    (void)state;
    assert_int_equal(cpprof__fail(NULL, CPPROF_BUSY, 0, "x"), CPPROF_BUSY);
    assert_int_equal(cpprof__fail_at(NULL, 1, "x"), CPPROF_BAD_DATA);
    assert_int_equal(cpprof__fail_nomem(NULL), CPPROF_NOMEM);
}

static void
text_is_one_terminated_line_whatever_goes_in(void **state)
{
    struct cpprof_error error;
    char name[1000];

    (void)state;
    cpprof__fail(&error, CPPROF_INVALID, 0, "a\nb\r\t\033[1mc");
    assert_string_equal(error.text, "a?b???[1mc");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    cpprof__fail(&error, CPPROF_INVALID, 0, "%s", name);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name_and_text),
        cmocka_unit_test(failure_fills_the_error_and_returns_its_status),
        cmocka_unit_test(failure_without_an_error_only_returns),
        cmocka_unit_test(text_is_one_terminated_line_whatever_goes_in),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
