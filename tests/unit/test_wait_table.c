/* SPDX-License-Identifier: MIT */
/* Who waits for which lock: times are given, nothing waits. */
#include "collect/signal/waits/wait_conditions.h"
#include "collect/signal/waits/wait_table.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS      UINT64_C(1000000)
#define ROUND   64 /* what a time may be off by: 16 ns, twice rounded */
#define T(ms)   (1000 * 1000 * MS + (ms)*MS)
#define N_LOCKS 100000

static char locks[N_LOCKS];

static int
setup(void **state)
{
    cpprof__wait_table_forked();
    cpprof__conditions_forked();
    return 0;
}

static uint64_t
charge(const void *lock, uint64_t now_ns)
{
    return cpprof__wait_charge(lock, now_ns, NULL);
}

static void
assert_near(uint64_t got, uint64_t want)
{
    assert_in_range(got, want > ROUND ? want - ROUND : 0, want + ROUND);
}

static void
lock_nobody_waits_for_is_not_charged(void **state)
{
    assert_false(cpprof__wait_may_charge(locks));
    assert_int_equal(charge(locks, T(5)), 0);
}

static void
one_waiter_is_charged_until_the_release(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, 1, T(0));

    assert_int_not_equal(slot, 0);
    assert_true(cpprof__wait_may_charge(locks));
    assert_near(charge(locks, T(30)), 30 * MS);
    /* It wakes up late: that is nobody's. */
    cpprof__wait_table_remove(slot, CPPROF__WAIT_GOT, T(0), T(40));
    assert_false(cpprof__wait_may_charge(locks));
    assert_near(charge(locks, T(50)), 0);
}

static void
all_waiters_are_charged_and_each_time_once(void **state)
{
    uint32_t slots[5];
    unsigned i;

    for (i = 0; i < 5; i++)
        slots[i] = cpprof__wait_table_add(locks, 1, T(i));
    /* 10 + 9 + 8 + 7 + 6 */
    assert_near(charge(locks, T(10)), 40 * MS);
    cpprof__wait_table_remove(slots[0], CPPROF__WAIT_GOT, T(0), T(11));
    /* Four more for 5 ms. */
    assert_near(charge(locks, T(15)), 20 * MS);
    cpprof__wait_table_remove(slots[1], CPPROF__WAIT_GOT, T(1), T(16));
    cpprof__wait_table_remove(slots[2], CPPROF__WAIT_GAVE_UP, T(2), T(17));
    /* Two for 5 ms, and one that gave up after 2 ms. */
    assert_near(charge(locks, T(20)), 12 * MS);
    cpprof__wait_table_remove(slots[3], CPPROF__WAIT_GOT, T(3), T(20));
    cpprof__wait_table_remove(slots[4], CPPROF__WAIT_GOT, T(4), T(20));
    assert_false(cpprof__wait_may_charge(locks));
}

static void
waiter_that_gave_up_is_charged_once_it_is_gone(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, 1, T(0));

    cpprof__wait_table_remove(slot, CPPROF__WAIT_GAVE_UP, T(0), T(7));
    assert_true(cpprof__wait_may_charge(locks));
    assert_near(charge(locks, T(50)), 7 * MS);
    assert_false(cpprof__wait_may_charge(locks));
}

static void
call_that_failed_did_not_wait(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, 1, T(0));

    cpprof__wait_table_remove(slot, CPPROF__WAIT_NONE, T(0), T(7));
    assert_false(cpprof__wait_may_charge(locks));
    assert_near(charge(locks, T(50)), 0);
}

static void
release_that_failed_is_charged_to_the_next(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, 1, T(0));
    uint64_t charged = charge(locks, T(10));

    assert_near(charged, 10 * MS);
    cpprof__wait_uncharge(locks, charged, 0);
    assert_near(charge(locks, T(12)), 12 * MS);
    cpprof__wait_table_remove(slot, CPPROF__WAIT_GOT, T(0), T(13));
}

static void
waiter_that_gave_up_long_ago_is_forgotten(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, 1, T(0));

    cpprof__wait_table_remove(slot, CPPROF__WAIT_GAVE_UP, T(0), T(7));
    cpprof__wait_forget_gave_up(locks, T(5000));
    assert_true(cpprof__wait_may_charge(locks));
    cpprof__wait_forget_gave_up(locks, T(20000));
    assert_false(cpprof__wait_may_charge(locks));
}

static void
waiters_that_have_not_been_charged_are_told(void **state)
{
    uint32_t one = cpprof__wait_table_add(locks, 1, T(0)), two, arrived = 0;

    two = cpprof__wait_table_add(locks, 1, T(1));
    cpprof__wait_charge(locks, T(2), &arrived);
    assert_int_equal(arrived, 2);
    cpprof__wait_table_remove(one, CPPROF__WAIT_GOT, T(0), T(2));
    cpprof__wait_charge(locks, T(3), &arrived);
    assert_int_equal(arrived, 2);
    cpprof__wait_uncharge(locks, MS, 1);
    cpprof__wait_charge(locks, T(4), &arrived);
    assert_int_equal(arrived, 3);
    cpprof__wait_table_remove(two, CPPROF__WAIT_GOT, T(1), T(4));
}

static void
followed_is_who_waits_or_gave_up(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, 1, T(0));

    assert_true(cpprof__wait_is_followed(locks));
    assert_false(cpprof__wait_is_followed(locks + 16));
    cpprof__wait_table_remove(slot, CPPROF__WAIT_GOT, T(0), T(1));
    assert_false(cpprof__wait_is_followed(locks));
    slot = cpprof__wait_table_add(locks, 1, T(2));
    cpprof__wait_table_remove(slot, CPPROF__WAIT_GAVE_UP, T(2), T(3));
    assert_true(cpprof__wait_is_followed(locks));
    charge(locks, T(4));
    assert_false(cpprof__wait_is_followed(locks));
}

/* ---- conditions ------------------------------------------------------- */

static uint32_t
sample_all(uint32_t n)
{
    return n;
}

static uint64_t
charge_woken(const void *mutex, uint64_t now_ns)
{
    return charge(cpprof__wait_woken_for(mutex), now_ns);
}

static void
who_waits_for_a_condition_waits_for_no_mutex(void **state)
{
    uint32_t slot = cpprof__condition_add(locks, locks + 64);

    assert_true(cpprof__condition_may_wake(locks));
    assert_false(cpprof__wait_may_charge(locks + 64));
    cpprof__condition_remove(slot, CPPROF__WAIT_GAVE_UP, 0);
    assert_false(cpprof__condition_may_wake(locks));
}

static void
all_who_are_woken_wait_for_the_mutex(void **state)
{
    uint32_t slots[3];
    unsigned i;

    for (i = 0; i < 3; i++)
        slots[i] = cpprof__condition_add(locks, locks + 64);
    cpprof__condition_wake(locks, true, T(0), sample_all);
    cpprof__condition_wake(locks, true, T(5), sample_all); /* there are none */
    assert_true(cpprof__wait_is_followed(locks + 64));
    assert_near(charge_woken(locks + 64, T(10)), 30 * MS);
    cpprof__condition_remove(slots[0], CPPROF__WAIT_GOT, 0);
    assert_near(charge_woken(locks + 64, T(11)), 2 * MS);
    cpprof__condition_remove(slots[1], CPPROF__WAIT_GOT, 1);
    cpprof__condition_remove(slots[2], CPPROF__WAIT_GOT, 2);
    assert_false(cpprof__wait_may_charge(locks + 64));
    assert_false(cpprof__condition_may_wake(locks));
}

static void
one_signal_wakes_one(void **state)
{
    uint32_t one = cpprof__condition_add(locks, locks + 64);
    uint32_t two = cpprof__condition_add(locks, locks + 64);

    cpprof__condition_wake(locks, false, T(0), sample_all);
    assert_near(charge_woken(locks + 64, T(10)), 10 * MS);
    cpprof__condition_remove(one, CPPROF__WAIT_GOT, 0);
    assert_near(charge_woken(locks + 64, T(20)), 0);
    assert_false(cpprof__wait_may_charge(locks + 64));
    cpprof__condition_remove(two, CPPROF__WAIT_GAVE_UP, 0);
}

static void
who_does_not_come_back_is_forgotten_after_a_second(void **state)
{
    uint32_t slot = cpprof__condition_add(locks, locks + 64);

    cpprof__condition_wake(locks, false, T(0), sample_all);
    cpprof__wait_forget_woken(locks + 64, T(500));
    assert_true(cpprof__wait_may_charge(locks + 64));
    cpprof__wait_forget_woken(locks + 64, T(1500));
    assert_false(cpprof__wait_may_charge(locks + 64));
    cpprof__condition_remove(slot, CPPROF__WAIT_GOT, 0);
    assert_false(cpprof__wait_may_charge(locks + 64));
}

static void
slots_are_used_again_for_other_locks(void **state)
{
    unsigned i;

    for (i = 0; i < N_LOCKS; i++) {
        uint32_t slot = cpprof__wait_table_add(&locks[i], 1, T(i));

        assert_int_not_equal(slot, 0);
        assert_near(charge(&locks[i], T(i + 3)), 3 * MS);
        cpprof__wait_table_remove(slot, CPPROF__WAIT_GOT, T(i), T(i + 3));
    }
    for (i = 0; i < CPPROF__WAIT_STRIPES; i++)
        assert_int_equal(cpprof__wait_stripes[i], 0);
}

static void
locks_beyond_a_stripes_slots_are_not_followed(void **state)
{
    uint32_t slots[64];
    unsigned i, n = 0, refused = 0;

    for (i = 0; i < N_LOCKS && n < 64; i++)
        if (cpprof__wait_stripe(&locks[i]) == 3)
            slots[n++] = cpprof__wait_table_add(&locks[i], 1, T(0));
    assert_int_equal(n, 64);
    for (i = 0; i < n; i++)
        refused += !slots[i];
    assert_int_equal(refused, n - CPPROF__WAIT_SLOTS);
    for (i = 0; i < n; i++)
        if (slots[i])
            cpprof__wait_table_remove(slots[i], CPPROF__WAIT_GOT, T(0), T(1));
    assert_int_equal(cpprof__wait_stripes[3], 0);
}

static void
child_of_a_fork_knows_no_waiters(void **state)
{
    cpprof__wait_table_add(locks, 1, T(0));
    cpprof__wait_table_forked();
    assert_false(cpprof__wait_may_charge(locks));
    assert_int_equal(charge(locks, T(9)), 0);
}

static void
time_wraps_and_differences_stay_right(void **state)
{
    /* 2^50 ticks of 16 ns are 2^54 ns. */
    uint64_t t = (UINT64_C(1) << 54) - 5 * MS;
    uint32_t one = cpprof__wait_table_add(locks, 1, t);
    uint32_t two = cpprof__wait_table_add(locks, 1, t + 2 * MS);

    assert_near(charge(locks, t + 10 * MS), 18 * MS);
    cpprof__wait_table_remove(one, CPPROF__WAIT_GOT, t, t + 10 * MS);
    assert_near(charge(locks, t + 11 * MS), 1 * MS);
    cpprof__wait_table_remove(two, CPPROF__WAIT_GOT, t, t + 11 * MS);
}

/* ---- threads ---------------------------------------------------------- */

/* The clock of this test, so that sums can be known. */
static uint64_t ticks = 1000;
static uint64_t waited, charged;
static bool charge_meanwhile;

static void *
hammer(void *arg)
{
    unsigned i, which = (unsigned)(uintptr_t)arg;

    for (i = 0; i < 20000; i++) {
        const void *lock = &locks[(i + which) % 16 * 8];
        uint64_t start = add_relaxed(&ticks, 64), end;
        uint32_t slot = cpprof__wait_table_add(lock, 1, start);

        end = add_relaxed(&ticks, 64);
        if (slot) {
            cpprof__wait_table_remove(slot, CPPROF__WAIT_GAVE_UP, start, end);
            add_relaxed(&waited, end - start);
        }
        if (charge_meanwhile && i % 3 == 0)
            add_relaxed(&charged, charge(lock, load_relaxed(&ticks)));
    }
    return NULL;
}

static void
hammer_from_8_threads(bool meanwhile)
{
    pthread_t threads[8];
    unsigned i;

    ticks = 1024;
    waited = charged = 0;
    charge_meanwhile = meanwhile;
    for (i = 0; i < 8; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, hammer, (void *)(uintptr_t)i), 0);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < 16; i++)
        charged += charge(&locks[i * 8], ticks);
    for (i = 0; i < CPPROF__WAIT_STRIPES; i++)
        assert_int_equal(cpprof__wait_stripes[i], 0);
}

static void
what_many_threads_waited_is_charged_exactly(void **state)
{
    hammer_from_8_threads(false);
    assert_int_equal(charged, waited);
}

/* A thread that is put off its processor between its clock and the table is
 * charged for longer, once; on a busy machine many are, but not every time. */
static void
what_is_charged_meanwhile_is_not_lost(void **state)
{
    bool is_close = false;
    int i;

    for (i = 0; i < 20 && !is_close; i++) {
        hammer_from_8_threads(true);
        assert_true(charged >= waited);
        is_close = charged <= 3 * waited;
    }
    assert_true(is_close);
}

/* Each comes, is woken up by whoever, and goes: in the end nobody is left. */
static void *
hammer_conditions(void *arg)
{
    unsigned i, which = (unsigned)(uintptr_t)arg;

    for (i = 0; i < 20000; i++) {
        const void *condition = &locks[(i + which) % 16 * 8];
        const void *mutex = &locks[512 + (i + which) % 16 * 8];
        uint32_t slot = cpprof__condition_add(condition, mutex);

        cpprof__condition_wake(condition, i % 3 == 0, add_relaxed(&ticks, 64),
                               sample_all);
        charge_woken(mutex, load_relaxed(&ticks));
        if (slot)
            cpprof__condition_remove(
                slot, i % 5 ? CPPROF__WAIT_GOT : CPPROF__WAIT_GAVE_UP, i);
    }
    return NULL;
}

static void
conditions_that_many_threads_use_are_empty_in_the_end(void **state)
{
    pthread_t threads[8];
    unsigned i;

    for (i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer_conditions,
                                        (void *)(uintptr_t)i),
                         0);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < CPPROF__CONDITION_STRIPES; i++)
        assert_int_equal(cpprof__condition_stripes[i], 0);
    for (i = 0; i < CPPROF__WAIT_STRIPES; i++)
        assert_int_equal(cpprof__wait_stripes[i], 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lock_nobody_waits_for_is_not_charged, setup),
        cmocka_unit_test_setup(one_waiter_is_charged_until_the_release, setup),
        cmocka_unit_test_setup(all_waiters_are_charged_and_each_time_once,
                               setup),
        cmocka_unit_test_setup(waiter_that_gave_up_is_charged_once_it_is_gone,
                               setup),
        cmocka_unit_test_setup(call_that_failed_did_not_wait, setup),
        cmocka_unit_test_setup(release_that_failed_is_charged_to_the_next,
                               setup),
        cmocka_unit_test_setup(waiter_that_gave_up_long_ago_is_forgotten,
                               setup),
        cmocka_unit_test_setup(waiters_that_have_not_been_charged_are_told,
                               setup),
        cmocka_unit_test_setup(followed_is_who_waits_or_gave_up, setup),
        cmocka_unit_test_setup(who_waits_for_a_condition_waits_for_no_mutex,
                               setup),
        cmocka_unit_test_setup(all_who_are_woken_wait_for_the_mutex, setup),
        cmocka_unit_test_setup(one_signal_wakes_one, setup),
        cmocka_unit_test_setup(
            who_does_not_come_back_is_forgotten_after_a_second, setup),
        cmocka_unit_test_setup(slots_are_used_again_for_other_locks, setup),
        cmocka_unit_test_setup(locks_beyond_a_stripes_slots_are_not_followed,
                               setup),
        cmocka_unit_test_setup(child_of_a_fork_knows_no_waiters, setup),
        cmocka_unit_test_setup(time_wraps_and_differences_stay_right, setup),
        cmocka_unit_test_setup(what_many_threads_waited_is_charged_exactly,
                               setup),
        cmocka_unit_test_setup(
            conditions_that_many_threads_use_are_empty_in_the_end, setup),
        cmocka_unit_test_setup(what_is_charged_meanwhile_is_not_lost, setup),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
