/* SPDX-License-Identifier: MIT */
/* Who waits for which lock: times are given, nothing waits. */
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
    return 0;
}

static uint64_t
charge_of(const void *lock, uint64_t now_ns)
{
    return cpprof__wait_table_release(lock, now_ns).ns;
}

/* A waiter leaves, when nobody has said that the lock was given up. */
static void
leave(uint32_t slot, enum cpprof__wait_result result, uint64_t start_ns,
      uint64_t now_ns)
{
    uint32_t who;

    cpprof__wait_table_remove(slot, result, start_ns, now_ns, &who);
    assert_int_equal(who, 0);
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
    assert_int_equal(charge_of(locks, T(5)), 0);
}

static void
one_waiter_is_charged_to_who_gave_the_lock_up(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0)), who;
    struct cpprof__wait_charge charge;

    assert_int_not_equal(slot, 0);
    assert_true(cpprof__wait_may_charge(locks));
    charge = cpprof__wait_table_release(locks, T(30));
    assert_near(charge.ns, 30 * MS);
    assert_int_equal(charge.n, 0);
    charge = cpprof__wait_table_released(locks, 7, T(31));
    assert_int_equal(charge.n, 0);
    /* It wakes up late. */
    charge =
        cpprof__wait_table_remove(slot, CPPROF__WAIT_GOT, T(0), T(40), &who);
    assert_int_equal(who, 7);
    assert_near(charge.ns, 10 * MS);
    assert_int_equal(charge.n, 1);
    assert_false(cpprof__wait_may_charge(locks));
    assert_near(charge_of(locks, T(50)), 0);
}

static void
waiter_that_is_quicker_than_who_gave_the_lock_up_is_not_lost(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0));
    struct cpprof__wait_charge charge;

    assert_near(cpprof__wait_table_release(locks, T(30)).ns, 30 * MS);
    leave(slot, CPPROF__WAIT_GOT, T(0), T(32));
    assert_true(cpprof__wait_may_charge(locks));
    charge = cpprof__wait_table_released(locks, 7, T(35));
    assert_near(charge.ns, 2 * MS);
    assert_int_equal(charge.n, 1);
    assert_false(cpprof__wait_may_charge(locks));
}

static void
who_gave_the_lock_up_long_ago_is_not_charged(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0)), who;

    cpprof__wait_table_release(locks, T(1));
    cpprof__wait_table_released(locks, 7, T(1));
    cpprof__wait_table_remove(slot, CPPROF__WAIT_GOT, T(0), T(2), &who);
    assert_int_equal(who, 7);
    slot = cpprof__wait_table_add(locks, T(10));
    leave(slot, CPPROF__WAIT_GOT, T(10), T(20));
    assert_near(charge_of(locks, T(50)), 10 * MS);
}

static void
all_waiters_are_charged_and_each_time_once(void **state)
{
    uint32_t slots[5];
    unsigned i;

    for (i = 0; i < 5; i++)
        slots[i] = cpprof__wait_table_add(locks, T(i));
    /* 10 + 9 + 8 + 7 + 6 */
    assert_near(charge_of(locks, T(10)), 40 * MS);
    leave(slots[0], CPPROF__WAIT_GOT, T(0), T(11));
    /* Four more for 5 ms, and one that had it after 1 ms. */
    assert_near(charge_of(locks, T(15)), 21 * MS);
    leave(slots[1], CPPROF__WAIT_GOT, T(1), T(16));
    leave(slots[2], CPPROF__WAIT_GAVE_UP, T(2), T(17));
    /* Two for 5 ms, and two that left after 1 ms and 2 ms. */
    assert_near(charge_of(locks, T(20)), 13 * MS);
    leave(slots[3], CPPROF__WAIT_GOT, T(3), T(20));
    leave(slots[4], CPPROF__WAIT_GOT, T(4), T(20));
    assert_near(charge_of(locks, T(20)), 0);
    assert_false(cpprof__wait_may_charge(locks));
}

static void
waiter_that_gave_up_is_charged_once_it_is_gone(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0));

    leave(slot, CPPROF__WAIT_GAVE_UP, T(0), T(7));
    assert_true(cpprof__wait_may_charge(locks));
    assert_near(charge_of(locks, T(50)), 7 * MS);
    assert_false(cpprof__wait_may_charge(locks));
}

static void
call_that_failed_did_not_wait(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0));

    leave(slot, CPPROF__WAIT_NONE, T(0), T(7));
    assert_false(cpprof__wait_may_charge(locks));
    assert_near(charge_of(locks, T(50)), 0);
}

static void
release_that_failed_is_charged_to_the_next(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0));
    struct cpprof__wait_charge charge =
        cpprof__wait_table_release(locks, T(10));

    assert_near(charge.ns, 10 * MS);
    cpprof__wait_unrelease(locks, charge);
    assert_near(charge_of(locks, T(12)), 12 * MS);
    leave(slot, CPPROF__WAIT_GOT, T(0), T(13));
}

static void
wait_that_ended_counts_when_it_is_charged(void **state)
{
    uint32_t one = cpprof__wait_table_add(locks, T(0));
    uint32_t two = cpprof__wait_table_add(locks, T(1));
    struct cpprof__wait_charge charge;

    assert_int_equal(cpprof__wait_table_release(locks, T(2)).n, 0);
    leave(one, CPPROF__WAIT_GAVE_UP, T(0), T(2));
    charge = cpprof__wait_table_release(locks, T(3));
    assert_int_equal(charge.n, 1);
    cpprof__wait_unrelease(locks, charge);
    assert_int_equal(cpprof__wait_table_release(locks, T(3)).n, 1);
    leave(two, CPPROF__WAIT_GAVE_UP, T(1), T(4));
    assert_int_equal(cpprof__wait_table_release(locks, T(5)).n, 1);
}

static void
followed_is_who_waits_or_gave_up(void **state)
{
    uint32_t slot = cpprof__wait_table_add(locks, T(0));

    assert_true(cpprof__wait_is_followed(locks));
    assert_false(cpprof__wait_is_followed(locks + 16));
    leave(slot, CPPROF__WAIT_GOT, T(0), T(1));
    assert_true(cpprof__wait_is_followed(locks));
    charge_of(locks, T(1));
    assert_false(cpprof__wait_is_followed(locks));
    slot = cpprof__wait_table_add(locks, T(2));
    leave(slot, CPPROF__WAIT_GAVE_UP, T(2), T(3));
    assert_true(cpprof__wait_is_followed(locks));
    charge_of(locks, T(4));
    assert_false(cpprof__wait_is_followed(locks));
}

static void
slots_are_used_again_for_other_locks(void **state)
{
    unsigned i;

    for (i = 0; i < N_LOCKS; i++) {
        uint32_t slot = cpprof__wait_table_add(&locks[i], T(i));

        assert_int_not_equal(slot, 0);
        assert_near(charge_of(&locks[i], T(i + 3)), 3 * MS);
        leave(slot, CPPROF__WAIT_GOT, T(i), T(i + 3));
        assert_near(charge_of(&locks[i], T(i + 4)), 0);
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
            slots[n++] = cpprof__wait_table_add(&locks[i], T(0));
    assert_int_equal(n, 64);
    for (i = 0; i < n; i++)
        refused += !slots[i];
    assert_int_equal(refused, n - CPPROF__WAIT_SLOTS);
    for (i = 0; i < n; i++)
        if (slots[i])
            leave(slots[i], CPPROF__WAIT_NONE, T(0), T(1));
    assert_int_equal(cpprof__wait_stripes[3], 0);
}

static void
child_of_a_fork_knows_no_waiters(void **state)
{
    cpprof__wait_table_add(locks, T(0));
    cpprof__wait_table_forked();
    assert_false(cpprof__wait_may_charge(locks));
    assert_int_equal(charge_of(locks, T(9)), 0);
}

static void
time_wraps_and_differences_stay_right(void **state)
{
    /* 2^50 ticks of 16 ns are 2^54 ns. */
    uint64_t t = (UINT64_C(1) << 54) - 5 * MS;
    uint32_t one = cpprof__wait_table_add(locks, t);
    uint32_t two = cpprof__wait_table_add(locks, t + 2 * MS);

    assert_near(charge_of(locks, t + 10 * MS), 18 * MS);
    leave(one, CPPROF__WAIT_GOT, t, t + 10 * MS);
    assert_near(charge_of(locks, t + 11 * MS), 1 * MS);
    leave(two, CPPROF__WAIT_GOT, t, t + 11 * MS);
}

/* ---- threads ---------------------------------------------------------- */

/* The clock of this test, so that sums can be known. */
static uint64_t ticks = 1000;
static uint64_t waited, charged;
static bool charge_meanwhile;

/* Each time others: a lock that was charged too much is charged the less later.
 */
#define N_HAMMERED 16
static const char *hammered = locks;

static void *
hammer(void *arg)
{
    unsigned i, which = (unsigned)(uintptr_t)arg;

    for (i = 0; i < 20000; i++) {
        const void *lock = &hammered[(i + which) % N_HAMMERED * 8];
        uint64_t start = add_relaxed(&ticks, 64), end;
        uint32_t slot = cpprof__wait_table_add(lock, start);

        end = add_relaxed(&ticks, 64);
        if (slot) {
            leave(slot, CPPROF__WAIT_GAVE_UP, start, end);
            add_relaxed(&waited, end - start);
        }
        if (charge_meanwhile && i % 3 == 0)
            add_relaxed(&charged, charge_of(lock, load_relaxed(&ticks)));
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
    hammered += N_HAMMERED * 8;
    charge_meanwhile = meanwhile;
    for (i = 0; i < 8; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, hammer, (void *)(uintptr_t)i), 0);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < N_HAMMERED; i++)
        charged += charge_of(&hammered[i * 8], ticks);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lock_nobody_waits_for_is_not_charged, setup),
        cmocka_unit_test_setup(one_waiter_is_charged_to_who_gave_the_lock_up,
                               setup),
        cmocka_unit_test_setup(
            waiter_that_is_quicker_than_who_gave_the_lock_up_is_not_lost,
            setup),
        cmocka_unit_test_setup(who_gave_the_lock_up_long_ago_is_not_charged,
                               setup),
        cmocka_unit_test_setup(all_waiters_are_charged_and_each_time_once,
                               setup),
        cmocka_unit_test_setup(waiter_that_gave_up_is_charged_once_it_is_gone,
                               setup),
        cmocka_unit_test_setup(call_that_failed_did_not_wait, setup),
        cmocka_unit_test_setup(release_that_failed_is_charged_to_the_next,
                               setup),
        cmocka_unit_test_setup(wait_that_ended_counts_when_it_is_charged,
                               setup),
        cmocka_unit_test_setup(followed_is_who_waits_or_gave_up, setup),
        cmocka_unit_test_setup(slots_are_used_again_for_other_locks, setup),
        cmocka_unit_test_setup(locks_beyond_a_stripes_slots_are_not_followed,
                               setup),
        cmocka_unit_test_setup(child_of_a_fork_knows_no_waiters, setup),
        cmocka_unit_test_setup(time_wraps_and_differences_stay_right, setup),
        cmocka_unit_test_setup(what_many_threads_waited_is_charged_exactly,
                               setup),
        cmocka_unit_test_setup(what_is_charged_meanwhile_is_not_lost, setup),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
