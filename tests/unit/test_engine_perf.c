/* SPDX-License-Identifier: MIT */
/* Whose perf events are. */
#include "collect/threads/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* It has the parent's memory and limits of its own: what it does to them
 * concerns no event of the parent's. */
static void
child_of_vfork_has_no_events(void **state)
{
    int status;
    pid_t child;

    cpprof__perf_own();
    assert_true(cpprof__perf_is_here());
    child = vfork();
    if (child == 0)
        _exit(cpprof__perf_is_here());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(cpprof__perf_is_here());
    cpprof__perf_in_child();
    assert_false(cpprof__perf_is_here());
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_of_vfork_has_no_events),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
