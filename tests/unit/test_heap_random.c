/* SPDX-License-Identifier: MIT */
/* Distances and weights, against libm and against their expectations. */
#include "collect/signal/heap/heap_random.h"

#include "heap_core_fixture.h"

#include <math.h>

#define GOOD 1e-9

static void
logarithm_is_that_of_libm(void **state)
{
    double worst = 0;
    double u;
    int i;

    (void)state;
    for (i = 0; i <= 53; i++) {
        for (u = 0.5; u <= 1; u += 1.0 / 997) {
            double x = ldexp(u, -i);
            double error = fabs(cpprof__minus_log(x) + log(x));

            worst = fmax(worst, error / fmax(1, -log(x)));
        }
    }
    assert_true(cpprof__minus_log(1) == 0);
    /* Relative, where the result is near 0, too. */
    for (i = 2; i < 53; i++) {
        u = 1 - ldexp(1, -i);
        worst = fmax(worst, fabs(cpprof__minus_log(u) / -log(u) - 1));
    }
    print_message("# worst %g\n", worst);
    assert_true(worst < GOOD);
}

static void
exponential_is_that_of_libm(void **state)
{
    double worst = 0;
    double x;

    (void)state;
    for (x = 1e-13; x < 100; x *= 1.001)
        worst = fmax(worst, fabs(cpprof__one_minus_exp(x) / -expm1(-x) - 1));
    print_message("# worst %g\n", worst);
    assert_true(worst < GOOD);
    assert_true(cpprof__one_minus_exp(0) == 0);
    assert_true(cpprof__one_minus_exp(INFINITY) == 1);
}

/* Mean and second moment, and how many are less than the mean. */
static void
distances_are_exponential(void **state)
{
    const int64_t rate = 524288;
    const int n = 1000000;
    uint64_t random = 1;
    double sum = 0, squares = 0, below = 0;
    int i;

    (void)state;
    for (i = 0; i < n; i++) {
        double d = (double)cpprof__heap_distance(&random, rate) / (double)rate;

        sum += d;
        squares += d * d;
        below += d < 1;
    }
    print_message("# %g %g %g\n", sum / n, squares / n, below / n);
    /* Standard errors: 0.001, 0.0045, 0.0005. */
    assert_true(fabs(sum / n - 1) < 0.004);
    assert_true(fabs(squares / n - 2) < 0.018);
    assert_true(fabs(below / n - (1 - exp(-1))) < 0.002);
}

static void
rates_that_are_no_mean_have_fixed_distances(void **state)
{
    uint64_t random = 1;

    (void)state;
    assert_true(cpprof__heap_distance(&random, 0) == UINT64_MAX);
    assert_true(cpprof__heap_distance(&random, 1) == 0);
    assert_true(cpprof__heap_distance(&random, CPPROF__HEAP_RATE_MAX) <
                (uint64_t)1 << 46);
}

static void
weight_is_the_inverse_of_the_probability_rounded_by_chance(void **state)
{
    const int64_t rate = 524288;
    uint64_t n, random = 7;

    (void)state;
    for (n = 1; n < 1ull << 40; n = n * 3 + 1) {
        double p = -expm1(-(double)n / (double)rate);

        assert_true(fabs((double)cpprof__heap_weight(&random, n, rate) -
                         (double)FRACTION / p) <=
                    1 + (double)FRACTION / p * GOOD);
    }
    assert_int_equal(cpprof__heap_weight(&random, 5, 1), FRACTION);
    assert_int_equal(cpprof__heap_weight(&random, UINT64_MAX, rate), FRACTION);
    /* The largest sum there can be of one sample. */
    assert_true(cpprof__heap_weight(&random, 1, CPPROF__HEAP_RATE_MAX) <=
                FRACTION * (uint64_t)(CPPROF__HEAP_RATE_MAX + 1));
}

/* Without chance all of these would be a third of a fraction too small. */
static void
weights_of_large_blocks_are_right_on_average(void **state)
{
    const int64_t rate = 524288;
    const uint64_t n = 8 * 524288;
    double exact = (double)FRACTION / -expm1(-8.0), sum = 0;
    uint64_t random = 11;
    int i;

    (void)state;
    for (i = 0; i < 1000000; i++)
        sum += (double)cpprof__heap_weight(&random, n, rate);
    /* Five standard errors of a million draws between neighbours. */
    assert_true(fabs(sum / 1e6 - exact) < 5 * 0.5 / 1e3);
}

static void
seeds_differ_from_each_other(void **state)
{
    uint64_t seeds[100];
    int i, j;

    (void)state;
    for (i = 0; i < 100; i++) {
        seeds[i] = cpprof__hook_seed(seeds);
        assert_true(seeds[i] != 0);
        for (j = 0; j < i; j++)
            assert_true(seeds[i] != seeds[j]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithm_is_that_of_libm),
        cmocka_unit_test(exponential_is_that_of_libm),
        cmocka_unit_test(distances_are_exponential),
        cmocka_unit_test(rates_that_are_no_mean_have_fixed_distances),
        cmocka_unit_test(
            weight_is_the_inverse_of_the_probability_rounded_by_chance),
        cmocka_unit_test(weights_of_large_blocks_are_right_on_average),
        cmocka_unit_test(seeds_differ_from_each_other),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
