/* SPDX-License-Identifier: MIT */
/* cpprof_http_handle() where the n-th allocation fails. */
#include "http_fixture.h"
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Whatever allocation fails: one answer, whole or cut short, and nothing is
 * left behind. */
static void
expect_no_leak(const char *address)
{
    long n, live;
    enum cpprof_status status;

    get(address); /* what stays for good is there */
    live = oom.n_live;
    for (n = 0;; n++) {
        oom.countdown = n;
        status = get(address);
        if (oom.countdown)
            break;
        oom.countdown = -1;
        if (status == CPPROF_OK && reply.n_begins != 1)
            fail_msg("%s: %d answers", address, reply.n_begins);
        if (oom.n_live != live)
            fail_msg("%s, allocation %ld: %ld left", address, n,
                     oom.n_live - live);
    }
    oom.countdown = -1;
    assert_int_equal(reply.n_begins, 1);
    assert_true(n > 0);
}

static void
without_memory_there_is_an_answer_and_no_leak(void **state)
{
    (void)state;
    oom_watch();
    expect_no_leak("/debug/pprof/");
    expect_no_leak("/debug/pprof/cmdline");
    expect_no_leak("/debug/pprof/symbol?0x1");
    expect_no_leak("/debug/pprof/nope");
    expect_no_leak("/debug/pprof/mutex");
    expect_no_leak("/debug/pprof/goroutine");
    expect_no_leak("/debug/pprof/profile?seconds=1");
    expect_no_leak("/debug/pprof/wall?seconds=1");
    expect_no_leak("/debug/fgprof?seconds=1&format=folded");
    expect_no_leak("/debug/pprof?x");
    expect_no_leak("/debug/pprof/block?seconds=1");
    expect_no_leak("/debug/pprof/delta_mutex");
    expect_no_leak("/debug/pprof/threadcreate?debug=1");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_an_answer_and_no_leak),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
