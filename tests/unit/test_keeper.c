/* SPDX-License-Identifier: MIT */
/*
 * Who is told that a keeper holds the program's descriptors has one, also where
 * threads cannot be made. What makes threads is this test's own.
 */
#include "collect/runtime/keeper.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static pthread_barrier_t both;
static bool is_at_once;    /* two make a keeper at the same time */
static uint32_t n_to_fail; /* of those that are made from now on */
static uint32_t n_started; /* keepers that were ever started */
static uint32_t n_ended;   /* and those that have ended */
static uint32_t n_told;    /* who was told that there is a keeper */
static uint32_t n_tasks;

bool
cpprof__own_threads_pause_now(void)
{
    return false;
}

bool
cpprof__own_list_has_others(int32_t besides)
{
    return false;
}

bool
cpprof__own_list_has_others_of_ours(void)
{
    return false;
}

void
cpprof__own_thread_end(void)
{
}

static void *
run_keeper(void *unused)
{
    keep(unused);
    __atomic_add_fetch(&n_ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

int
cpprof__own_thread_start_detached(const struct cpprof__own_thread *what)
{
    uint32_t n = load_acquire(&n_to_fail);
    pthread_t thread;

    (void)what;
    if (is_at_once)
        pthread_barrier_wait(&both);
    while (n && !cas_acq_rel(&n_to_fail, &n, n - 1))
        continue;
    if (n)
        return EAGAIN;
    add_relaxed(&n_started, 1u);
    pthread_create(&thread, NULL, run_keeper, NULL);
    return pthread_detach(thread);
}

static void *
enter(void *unused)
{
    if (cpprof__keeper_enter())
        add_relaxed(&n_told, 1u);
    return unused;
}

/* Two threads that are to have tables are made at the same time, and so many
 * keepers cannot be. How many may have a table. */
static uint32_t
enter_two(uint32_t n_fail)
{
    pthread_t other;

    n_told = 0;
    n_to_fail = n_fail;
    is_at_once = true;
    assert_int_equal(pthread_create(&other, NULL, enter, NULL), 0);
    enter(NULL);
    pthread_join(other, NULL);
    is_at_once = false;
    return n_told;
}

static void
wait_for_end(void)
{
    while (load_acquire(&n_ended) < load_acquire(&n_started))
        usleep(1000);
}

static void
without_a_keeper_nobody_has_a_table(void **state)
{
    (void)state;
    assert_int_equal(enter_two(2), 0);
    assert_false(cpprof__keeper_is_there());
    assert_int_equal(n_counted, 0);
}

static void
one_keeper_is_enough_for_who_could_make_none(void **state)
{
    uint32_t n, i;

    (void)state;
    n = enter_two(1);
    assert_true(n == 1 || n == 2); /* 1: it looked before the other's was */
    assert_true(cpprof__keeper_is_there());
    assert_int_equal(n_counted, n);
    for (i = 0; i < n; i++)
        cpprof__keeper_leave(false);
    wait_for_end();
    assert_false(cpprof__keeper_is_there());
}

static void
two_keepers_end_when_nobody_is_counted(void **state)
{
    (void)state;
    assert_int_equal(enter_two(0), 2);
    cpprof__keeper_leave(false);
    assert_true(cpprof__keeper_is_there());
    cpprof__keeper_leave(false);
    wait_for_end();
    assert_false(cpprof__keeper_is_there());
    assert_int_equal(n_counted, 0);
}

static void
count_task(void)
{
    add_relaxed(&n_tasks, 1u);
}

static void
a_task_is_run_by_a_keeper_that_nobody_needs_any_more(void **state)
{
    uint32_t i;

    (void)state;
    for (i = 0; i < 200; i++) {
        assert_true(cpprof__keeper_enter());
        assert_true(cpprof__keeper_run(count_task));
        cpprof__keeper_leave(false);
        wait_for_end();
        assert_int_equal(load_acquire(&n_tasks), i + 1);
    }
    assert_false(cpprof__keeper_run(count_task));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_keeper_nobody_has_a_table),
        cmocka_unit_test(one_keeper_is_enough_for_who_could_make_none),
        cmocka_unit_test(two_keepers_end_when_nobody_is_counted),
        cmocka_unit_test(a_task_is_run_by_a_keeper_that_nobody_needs_any_more),
    };

    pthread_barrier_init(&both, NULL, 2);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
