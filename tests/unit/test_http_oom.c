/* SPDX-License-Identifier: MIT */
/* cpprof_http_handle() where the n-th allocation fails. */
#include "http_fixture.h"
#include "oom.h"

#include "collect/store/tables.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

/* A thread of ours that ends by itself gives back what it has a moment later.
 */
static long
n_live_at_last(long wanted)
{
    int i;

    for (i = 0;
         i < 2000 && __atomic_load_n(&oom.n_live, __ATOMIC_RELAXED) != wanted;
         i++)
        usleep(1000);
    return __atomic_load_n(&oom.n_live, __ATOMIC_RELAXED);
}

/* Whatever allocation fails: one answer, whole or cut short, and nothing is
 * left behind. */
static void
expect_no_leak(const char *address, int status_at_last)
{
    long n, live, left;
    enum cpprof_status status;

    get(address); /* what stays for good is there */
    usleep(100000);
    live = oom.n_live;
    for (n = 0;; n++) {
        oom.countdown = n;
        status = get(address);
        if (oom.countdown)
            break;
        oom.countdown = -1;
        if (status == CPPROF_OK && reply.n_begins != 1)
            fail_msg("%s: %d answers", address, reply.n_begins);
        left = n_live_at_last(live) - live;
        if (left)
            fail_msg("%s, allocation %ld: %ld left", address, n, left);
    }
    oom.countdown = -1;
    assert_int_equal(reply.status, status_at_last);
    assert_true(n > 0);
}

static void
without_memory_there_is_an_answer_and_no_leak(void **state)
{
    (void)state;
    /* what the library does when it is loaded */
    assert_int_equal(cpprof__tables_make(NULL), CPPROF_OK);
    oom_watch();
    expect_no_leak("/debug/pprof/", 200);
    expect_no_leak("/debug/pprof/ui", 200);
    expect_no_leak("/debug/pprof/ui/page.js", 200);
    expect_no_leak("/debug/pprof/cmdline", 200);
    expect_no_leak("/debug/pprof/symbol?0x1", 200);
    expect_no_leak("/debug/pprof/nope", 404);
    expect_no_leak("/debug/pprof/mutex", 200);
    expect_no_leak("/debug/pprof/goroutine", 200);
    expect_no_leak("/debug/pprof/profile?seconds=1", 200);
    expect_no_leak("/debug/pprof?x", 301);
    expect_no_leak("/debug/pprof/block?seconds=1", 200);
    expect_no_leak("/debug/pprof/delta_mutex", 200);
    expect_no_leak("/debug/pprof/threadcreate?debug=1", 200);
}

static int pipe_of_sleeper[2];

static void *
sleep_on_pipe(void *unused)
{
    char byte;

    return read(pipe_of_sleeper[0], &byte, 1) == 1 ? unused : NULL;
}

static void
rest(void)
{
    usleep(25000); /* some ticks */
}

/* Two stacks are more than a first buffer holds. */
static void
without_memory_stacks_are_not_folded(void **state)
{
    pthread_t sleeper;

    (void)state;
    assert_int_equal(pipe(pipe_of_sleeper), 0);
    assert_int_equal(pthread_create(&sleeper, NULL, sleep_on_pipe, NULL), 0);
    reply.meanwhile = rest;
    oom_watch();
    expect_no_leak("/debug/pprof/wall?seconds=1", 200);
    expect_no_leak("/debug/fgprof?seconds=1&format=folded", 200);
    reply.meanwhile = NULL;
    assert_int_equal(write(pipe_of_sleeper[1], "", 1), 1);
    pthread_join(sleeper, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_an_answer_and_no_leak),
        cmocka_unit_test(without_memory_stacks_are_not_folded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
