/* SPDX-License-Identifier: MIT */
/*
 * Captures that cpprof_http_handle() makes: how long they take, how many run
 * at once, and clients that leave one.
 */
#include "http_expect.h"

#include <cpprof/cpprof.h>

#include <sys/wait.h>
#include <unistd.h>

static void
a_capture_takes_as_long_as_is_asked(void **state)
{
    (void)state;
    expect_profile("/debug/pprof/profile?seconds=7",
                   FILE_NAME("profile") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 7000000000);
    expect_profile("/debug/pprof/profile?seconds=x&rate=1000&labels=0",
                   FILE_NAME("profile") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 30000000000);
    expect_profile("/pprof/profile?seconds=-1",
                   FILE_NAME("profile") BYTES SAFE);
    assert_int_equal(reply.waited_ns, 30000000000);
    expect_profile("/debug/pprof/profile?seconds=9223372036854775807",
                   FILE_NAME("profile") BYTES SAFE);
    assert_int_equal(reply.waited_ns, INT64_MAX);
}

/* In the wait of a capture, something else is done. */
static void
capture_during(const char *address, void (*meanwhile)(void))
{
    reply.meanwhile = meanwhile;
    assert_int_equal(get(address), CPPROF_OK);
    reply.meanwhile = NULL;
    assert_int_equal(reply.status, 200);
}

static bool began_first;

static void
look_at_headers(void)
{
    began_first = reply.n_begins == 1 && !reply.n_body;
}

static void
headers_go_out_before_the_wait(void **state)
{
    static const char *const addresses[] = {"/debug/pprof/profile?seconds=1",
                                            "/debug/pprof/block?seconds=1"};
    size_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        began_first = false;
        capture_during(addresses[i], look_at_headers);
        assert_true(began_first);
        assert_true(reply.n_body > 20);
    }
}

static void
a_rate_is_bounded(void **state)
{
    static const char bad[] =
        "invalid value for \"rate\" - must be an integer from 1 to 1000\n";

    (void)state;
    expect_error("/debug/pprof/profile?rate=0", 400, bad);
    expect_error("/debug/pprof/profile?rate=1001", 400, bad);
    expect_error("/debug/pprof/wall?rate=x", 400, bad);
    expect_error("/debug/fgprof?rate=-5", 400, bad);
}

static struct reply second;

static void
send_second(struct cpprof_http_request request)
{
    request.method = "GET";
    request.query = "seconds=1";
    memset(&second, 0, sizeof second);
    send_to(&second, request, NULL);
}

static void
ask_for_the_only_one(void)
{
    send_second((struct cpprof_http_request){
        .path = "/debug/pprof/profile", .flags = CPPROF_HTTP_ONE_CPU_CAPTURE});
}

static void
ask_for_one_of_several(void)
{
    send_second((struct cpprof_http_request){.path = "/debug/pprof/profile"});
}

static void
ask_beyond_the_limit(void)
{
    send_second((struct cpprof_http_request){.path = "/debug/pprof/goroutine",
                                             .max_captures = 1});
}

static void
expect_second_refused(int status, const char *body)
{
    assert_int_equal(second.status, status);
    assert_string_equal(second.headers, PLAIN SAFE PPROF);
    assert_string_equal(second.body, body);
}

static void
a_second_cpu_capture_is_served(void **state)
{
    (void)state;
    capture_during("/debug/pprof/profile?seconds=1", ask_for_one_of_several);
    assert_int_equal(second.status, 200);
    assert_memory_equal(second.body, "\x1f\x8b", 2);
}

static void
a_second_cpu_capture_is_refused_as_go_does_if_asked(void **state)
{
    (void)state;
    capture_during("/debug/pprof/profile?seconds=1", ask_for_the_only_one);
    expect_second_refused(
        500, "Could not enable CPU profiling: cpu profiling already in use\n");
    ask_for_the_only_one();
    assert_int_equal(second.status, 200);
}

static int
take_all(void *ctx, const void *data, size_t n)
{
    (void)ctx, (void)data, (void)n;
    return 0;
}

static void
the_profile_of_the_program_counts_as_one(void **state)
{
    const struct cpprof_writer writer = {sizeof writer, take_all, NULL, NULL};

    (void)state;
    assert_int_equal(cpprof_cpu_start(&writer, NULL, NULL), CPPROF_OK);
    ask_for_the_only_one();
    assert_int_equal(second.status, 500);
    ask_for_one_of_several();
    assert_int_equal(second.status, 200);
    assert_int_equal(cpprof_cpu_stop(NULL), CPPROF_OK);
    ask_for_the_only_one();
    assert_int_equal(second.status, 200);
}

static void
captures_are_counted(void **state)
{
    (void)state;
    capture_during("/debug/pprof/block?seconds=1", ask_beyond_the_limit);
    expect_second_refused(503,
                          "1 captures run already, which is the most that this "
                          "server runs at once\n");
    ask_beyond_the_limit();
    assert_int_equal(second.status, 200);
}

static int child_status;

static void
fork_and_ask(void)
{
    pid_t child = fork();

    if (!child) {
        ask_beyond_the_limit();
        _exit(second.status == 200 ? 0 : 1);
    }
    waitpid(child, &child_status, 0);
}

static void
a_child_has_none_of_its_parents_captures(void **state)
{
    (void)state;
    child_status = -1;
    capture_during("/debug/pprof/block?seconds=1", fork_and_ask);
    assert_int_equal(child_status, 0);
}

/* ---- clients that leave ----------------------------------------------- */

static void
a_client_that_leaves_ends_its_capture(void **state)
{
    static const char *const addresses[] = {
        "/debug/pprof/profile", "/debug/pprof/block?seconds=60",
        "/debug/pprof/wall", "/debug/fgprof?format=folded"};
    size_t i;

    (void)state;
    for (i = 0; i < 4; i++) {
        reply.leaves = true;
        assert_int_equal(get(addresses[i]), CPPROF_SYSTEM);
        reply.leaves = false;
        assert_int_equal(reply.n_waits, 1);
        assert_int_equal(reply.n_body, 0);
    }
    ask_beyond_the_limit(); /* none is left */
    assert_int_equal(second.status, 200);
}

static void
nothing_is_called_after_a_write_that_failed(void **state)
{
    static const char *const addresses[] = {
        "/debug/pprof/", "/debug/pprof/mutex?debug=1", "/debug/pprof/goroutine",
        "/debug/pprof/nope", "/debug/pprof/profile?seconds=1"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        reply.fail_at = 1;
        assert_int_equal(get(addresses[i]), CPPROF_SYSTEM);
        reply.fail_at = 0;
        assert_int_equal(reply.n_begins, 1);
        assert_int_equal(reply.n_after, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_takes_as_long_as_is_asked),
        cmocka_unit_test(headers_go_out_before_the_wait),
        cmocka_unit_test(a_rate_is_bounded),
        cmocka_unit_test(a_second_cpu_capture_is_served),
        cmocka_unit_test(a_second_cpu_capture_is_refused_as_go_does_if_asked),
        cmocka_unit_test(the_profile_of_the_program_counts_as_one),
        cmocka_unit_test(captures_are_counted),
        cmocka_unit_test(a_child_has_none_of_its_parents_captures),
        cmocka_unit_test(a_client_that_leaves_ends_its_capture),
        cmocka_unit_test(nothing_is_called_after_a_write_that_failed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
