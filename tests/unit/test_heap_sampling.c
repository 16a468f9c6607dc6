/* SPDX-License-Identifier: MIT */
/* Which allocations are sampled, at every rate and across changes of it; and
 * that what the samples stand for is what was allocated. */
#include "heap_core_fixture.h"

#include <errno.h>
#include <math.h>

static uint64_t
n_sampled(void)
{
    return ever_allocated(&cpprof__heap).n_sampled;
}

static void
rate_1_samples_everything_with_weight_1(void **state)
{
    struct cpprof__heap_sum sum;
    uintptr_t i;

    (void)state;
    fresh_heap(1);
    for (i = 0; i < 1000; i++)
        allocated(0x100000 + i * 64, i);
    sum = in_use(&cpprof__heap);
    assert_int_equal(sum.n_sampled, 1000);
    assert_int_equal(sum.objects, 1000 * FRACTION);
    assert_int_equal(sum.bytes, 999 * 1000 / 2 * FRACTION);
    for (i = 0; i < 1000; i++)
        assert_true(freed(0x100000 + i * 64));
    assert_int_equal(in_use(&cpprof__heap).n_sampled, 0);
    assert_int_equal(ever_allocated(&cpprof__heap).objects, 1000 * FRACTION);
}

static void
rate_0_samples_nothing_and_can_be_left(void **state)
{
    uintptr_t i;

    (void)state;
    fresh_heap(0);
    for (i = 0; i < 100; i++)
        allocated(0x100000, (size_t)1 << 40);
    assert_int_equal(n_sampled(), 0);
    assert_int_equal(cpprof__heap_set_rate(1), 0);
    allocated(0x200000, 1);
    assert_int_equal(n_sampled(), 1);
    assert_int_equal(cpprof__heap_set_rate(0), 1);
    allocated(0x300000, 1);
    assert_int_equal(n_sampled(), 1);
}

static void
negative_rate_reads_and_too_high_a_rate_is_the_highest(void **state)
{
    (void)state;
    fresh_heap(4096);
    assert_int_equal(cpprof__heap_set_rate(-1), 4096);
    assert_int_equal(cpprof__heap_set_rate(INT64_MAX), 4096);
    assert_true(cpprof__heap_set_rate(INT64_MIN) == CPPROF__HEAP_RATE_MAX);
    allocated(0x100000, 100);
    assert_true(cpprof__heap.head->rate == CPPROF__HEAP_RATE_MAX);
}

static void
block_of_no_bytes_is_sampled_as_one_of_one_byte(void **state)
{
    const int n = 200000;
    double expected = n * -expm1(-1.0 / 16);
    struct cpprof__heap_sum sum;
    int i;

    (void)state;
    fresh_heap(16);
    for (i = 0; i < n; i++)
        allocated(0x100000 + (uintptr_t)i * 32, 0);
    sum = in_use(&cpprof__heap);
    print_message("# %llu %g\n", (unsigned long long)sum.n_sampled, expected);
    assert_true(fabs((double)sum.n_sampled - expected) < 5 * sqrt(expected));
    assert_int_equal(sum.bytes, 0);
}

static void
size_beyond_all_bounds_does_not_poison_the_count_down(void **state)
{
    static const size_t sizes[] = {
        SIZE_MAX,         SIZE_MAX - 15, SIZE_MAX / 2,    SIZE_MAX / 2 + 1,
        SIZE_MAX / 2 + 2, SIZE_MAX / 4,  SIZE_MAX / 4 + 2};
    unsigned i, change;

    (void)state;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (change = 0; change < 2; change++) {
            fresh_heap(64);
            allocated(0x100000, 1);
            if (change)
                cpprof__heap_set_rate(65);
            if (cpprof__heap_due(sizes[i]))
                cpprof__heap_sample(NULL, sizes[i], 0);
            allocated(0x200000, 1 << 20);
            assert_true(freed(0x200000));
        }
        /* It may even be one that the program has, of another kind. */
        fresh_heap(64);
        allocated(0x100000, sizes[i]);
        assert_int_equal(in_use(&cpprof__heap).bytes_sampled,
                         CPPROF__HEAP_BYTES_MAX);
    }
}

static void
nothing_is_sampled_while_exempt_but_what_is_freed_goes(void **state)
{
    (void)state;
    fresh_heap(1);
    allocated(0x100000, 10);
    cpprof__hook_self.exempt++;
    allocated(0x200000, 10);
    assert_true(freed(0x100000));
    cpprof__hook_self.exempt--;
    assert_false(freed(0x200000));
    assert_int_equal(n_sampled(), 1);
}

static void
failed_allocation_is_not_sampled(void **state)
{
    (void)state;
    fresh_heap(1);
    errno = ENOMEM;
    assert_true(cpprof__heap_due(100));
    cpprof__heap_sample(NULL, 100, 0);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(n_sampled(), 0);
}

/* Mixed sizes as programs have them, all of one stack. */
static const size_t sizes[] = {8,    24,    100,   1000,    4096,
                               9999, 50000, 65536, 1 << 20, 64 << 20};
static const unsigned counts[] = {40000, 20000, 10000, 2000, 500,
                                  200,   60,    40,    4,    1};
#define SIZES (sizeof sizes / sizeof *sizes)

struct truth {
    double objects, bytes;         /* exact */
    double var_objects, var_bytes; /* of the estimates of one run */
    double sum_objects, sum_bytes; /* of the estimates */
};

static void
run_once(struct truth *t, int64_t rate, bool change)
{
    const double other = (double)rate * 4;
    unsigned left[SIZES], n = 0, i;
    struct cpprof__heap_sum got;
    uintptr_t address = 0x10000000;

    memcpy(left, counts, sizeof left);
    t->objects = t->bytes = t->var_objects = t->var_bytes = 0;
    for (;;) {
        bool any = false;

        /* All sizes by turns, in proportion. */
        for (i = 0; i < SIZES; i++) {
            double now = change && n % 2 ? other : (double)rate;
            double p = -expm1(-(double)sizes[i] / now);

            if (!left[i] || (counts[i] < 40000 && n % (40000 / counts[i]) != 0))
                continue;
            any = true;
            left[i]--;
            allocated(address += 64, sizes[i]);
            t->objects++;
            t->bytes += (double)sizes[i];
            t->var_objects += 1 / p - 1;
            t->var_bytes += (double)sizes[i] * (double)sizes[i] * (1 / p - 1);
        }
        n++;
        if (change)
            cpprof__heap_set_rate(n % 2 ? (int64_t)other : rate);
        if (!any && n > 40000)
            break;
    }
    got = in_use(&cpprof__heap);
    t->sum_objects += (double)got.objects / (double)FRACTION;
    t->sum_bytes += (double)got.bytes / (double)FRACTION;
}

/* The mean of many runs is within five standard errors. */
static void
check_truth(int64_t rate, bool change, int runs)
{
    struct truth t = {0};
    uint64_t random = 77;
    double d_objects, d_bytes;
    int i;

    for (i = 0; i < runs; i++) {
        fresh_heap(rate);
        cpprof__hook_self.random = random;
        run_once(&t, rate, change);
        random = cpprof__hook_self.random;
    }
    d_objects = t.sum_objects / runs / t.objects - 1;
    d_bytes = t.sum_bytes / runs / t.bytes - 1;
    print_message("# rate %lld: objects %+.5f, bytes %+.5f\n", (long long)rate,
                  d_objects, d_bytes);
    assert_true(fabs(d_objects) <
                5 * sqrt(t.var_objects / runs) / t.objects + 5e-4);
    assert_true(fabs(d_bytes) < 5 * sqrt(t.var_bytes / runs) / t.bytes + 5e-4);
}

static void
estimates_are_unbiased_over_mixed_sizes(void **state)
{
    (void)state;
    check_truth(524288, false, 100);
    check_truth(4096, false, 20);
}

static void
estimates_stay_unbiased_when_the_rate_changes_all_the_time(void **state)
{
    (void)state;
    check_truth(512, true, 60);
}

static void
threads_own_changes_of_the_rate_are_seen_at_once(void **state)
{
    int i;

    (void)state;
    fresh_heap(CPPROF__HEAP_RATE_MAX);
    for (i = 0; i < 100000; i++) {
        cpprof__heap_set_rate(0);
        allocated(0x100000, 64);
        cpprof__heap_set_rate(1);
        allocated(0x200000, 64);
        assert_true(freed(0x200000));
    }
    assert_int_equal(n_sampled(), 100000);
    /* Not the first two: nothing had been sampled. */
    assert_int_equal(cpprof__heap.head->n_rates, 99999);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_1_samples_everything_with_weight_1),
        cmocka_unit_test(rate_0_samples_nothing_and_can_be_left),
        cmocka_unit_test(
            negative_rate_reads_and_too_high_a_rate_is_the_highest),
        cmocka_unit_test(block_of_no_bytes_is_sampled_as_one_of_one_byte),
        cmocka_unit_test(size_beyond_all_bounds_does_not_poison_the_count_down),
        cmocka_unit_test(
            nothing_is_sampled_while_exempt_but_what_is_freed_goes),
        cmocka_unit_test(failed_allocation_is_not_sampled),
        cmocka_unit_test(estimates_are_unbiased_over_mixed_sizes),
        cmocka_unit_test(
            estimates_stay_unbiased_when_the_rate_changes_all_the_time),
        cmocka_unit_test(threads_own_changes_of_the_rate_are_seen_at_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
