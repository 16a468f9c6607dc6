/* SPDX-License-Identifier: MIT */
/* Turns of those that make profiles (http/gate.h). */
#include "http_fixture.h"

#include "collect/store/tables.h"
#include "http/profiles/limits.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

static struct cpprof__call nobody;

static void
take_all(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__GATE; i++)
        assert_true(cpprof__turn_begin(&nobody));
}

static void
give_all(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__GATE; i++)
        cpprof__turn_end();
}

static void
who_leaves_while_it_waits_is_answered_nothing(void **state)
{
    static const char *const addresses[] = {
        "/debug/pprof/mutex", "/debug/pprof/goroutine?debug=2",
        "/debug/pprof/symbol?0x1000", "/debug/pprof/delta_mutex"};
    size_t i;

    (void)state;
    take_all();
    reply.leaves = true;
    for (i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        assert_int_equal(get(addresses[i]), CPPROF_SYSTEM);
        assert_int_equal(reply.n_begins, 0);
    }
    reply.leaves = false;
    give_all();
}

static void
end_one_turn(void)
{
    if (reply.n_waits == 3)
        cpprof__turn_end();
}

static void
who_waits_is_answered_when_a_turn_ends(void **state)
{
    (void)state;
    take_all();
    reply.meanwhile = end_one_turn;
    assert_int_equal(get("/debug/pprof/mutex"), CPPROF_OK);
    reply.meanwhile = NULL;
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.n_waits, 3);
    /* That turn and its own are over, the others are not. */
    assert_true(cpprof__turn_begin(&nobody));
    give_all();
}

static void
heads_wait_for_nobody(void **state)
{
    (void)state;
    take_all();
    assert_int_equal(ask("HEAD", "/debug/pprof/mutex"), CPPROF_OK);
    assert_int_equal(reply.n_waits, 0);
    give_all();
}

/* ---- readers ---------------------------------------------------------- */

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_reading;

static int
slow_begin(void *ctx, int status, const struct cpprof_http_header *headers,
           size_t n_headers, int64_t n_body)
{
    (void)ctx;
    (void)headers;
    (void)n_headers;
    (void)n_body;
    return status == 200 ? 0 : EINVAL;
}

static int
slow_write(void *ctx, const void *data, size_t n)
{
    (void)ctx;
    (void)data;
    (void)n;
    __atomic_fetch_add(&n_reading, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&reading);
    pthread_mutex_unlock(&reading);
    return 0;
}

static void *
read_slowly(void *path)
{
    const struct cpprof_http_request request = {
        .size = sizeof request, .method = "GET", .path = path};
    const struct cpprof_http_response response = {sizeof response, slow_begin,
                                                  slow_write, NULL};

    return cpprof_http_handle(&request, &response, NULL) == CPPROF_OK ? NULL
                                                                      : path;
}

static void
slow_readers_hold_up_nobody(void **state)
{
    static char *const paths[] = {"/debug/pprof/mutex", "/debug/pprof/block",
                                  "/debug/pprof/symbol",
                                  "/debug/pprof/delta_block"};
    const struct timespec moment = {0, 1000000};
    pthread_t threads[8];
    void *failed;
    size_t i;

    (void)state;
    pthread_mutex_lock(&reading);
    /* The last one has it to itself, so there is one of it. */
    for (i = 0; i < 7; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_slowly,
                                        paths[i < 6 ? i % 3 : 3]),
                         0);
    while (__atomic_load_n(&n_reading, __ATOMIC_ACQUIRE) < 7)
        nanosleep(&moment, NULL);
    assert_int_equal(get("/debug/pprof/mutex"), CPPROF_OK);
    assert_int_equal(reply.status, 200);
    pthread_mutex_unlock(&reading);
    for (i = 0; i < 7; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

static int
load(void **state)
{
    (void)state;
    return cpprof__tables_make(NULL) != CPPROF_OK;
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_while_it_waits_is_answered_nothing),
        cmocka_unit_test(who_waits_is_answered_when_a_turn_ends),
        cmocka_unit_test(heads_wait_for_nobody),
        cmocka_unit_test(slow_readers_hold_up_nobody),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load, NULL);
}
