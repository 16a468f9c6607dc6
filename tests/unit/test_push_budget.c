/* SPDX-License-Identifier: MIT */
/* What follows from the cost of an interval: rates and intervals. */
#include "push/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct cpprof__push_budget budget;

/* An interval that costs so much at full rate and usual length. */
static void
pass(uint64_t sampling, uint64_t threads)
{
    cpprof__push_budget_decide(&budget, sampling >> budget.rates,
                               threads >> budget.intervals, 1000);
}

static int
set_up(void **state)
{
    (void)state;
    budget = (struct cpprof__push_budget){.ppm = 10000};
    return 0;
}

static void
rates_fall_to_what_may_be_spent_and_come_back(void **state)
{
    unsigned i;

    (void)state;
    pass(600, 300);
    assert_int_equal(budget.rates, 0);
    for (i = 0; i < 10; i++)
        pass(7000, 100);
    assert_int_equal(budget.rates, 3);
    assert_int_equal(budget.intervals, 0);
    /* What fits once does not fit at twice the rate. */
    for (i = 0; i < 10; i++)
        pass(6000, 100);
    assert_int_equal(budget.rates, 3);
    for (i = 0; i < 10; i++)
        pass(200, 100);
    assert_int_equal(budget.rates, 0);
}

static void
intervals_grow_where_profiles_cost_most(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 10; i++)
        pass(100, 3000);
    assert_int_equal(budget.rates, 0);
    assert_int_equal(budget.intervals, 2);
    for (i = 0; i < 10; i++)
        pass(100, 300);
    assert_int_equal(budget.intervals, 0);
}

static void
there_are_limits_to_both(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 30; i++)
        pass(UINT64_MAX / 4, UINT64_MAX / 4);
    assert_int_equal(budget.rates, CPPROF__BUDGET_RATES);
    assert_int_equal(budget.intervals, CPPROF__BUDGET_INTERVALS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rates_fall_to_what_may_be_spent_and_come_back,
                               set_up),
        cmocka_unit_test_setup(intervals_grow_where_profiles_cost_most, set_up),
        cmocka_unit_test_setup(there_are_limits_to_both, set_up),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
