/* SPDX-License-Identifier: MIT */
/*
 * Random distances and weights, from a 64-bit state for each thread and
 * polynomials instead of libm.
 *
 * The generator is splitmix64. Logarithm and exponential reduce their argument
 * to a small range and sum a power series there.
 *
 * Invariants: no call of libm, no floating-point exception but "inexact"; a
 * thread that was not seeded draws its seed from that of the process and its
 * own address.
 */
#include "collect/signal/heap/heap_random.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/mix.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/signal/heap/heap_tables.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define LN2      0x1.62e42fefa39efp-1
#define SQRT2    0x1.6a09e667f3bcdp+0
#define ONE_BITS 0x3ff0000000000000u
#define MANTISSA 52

static uint64_t
bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double
double_of(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/*
 * u = m * 2^e with m around 1; ln m = 2 artanh(s), s = (m - 1) / (m + 1),
 * |s| < 0.172, by its power series.
 */
double
cpprof__minus_log(double u)
{
    uint64_t bits = bits_of(u);
    int exponent = (int)(bits >> MANTISSA) - 1023;
    double m = double_of((bits & ((1ull << MANTISSA) - 1)) | ONE_BITS);
    double s, square, sum = 0;
    int i;

    if (m > SQRT2) {
        m /= 2;
        exponent++;
    }
    s = (m - 1) / (m + 1);
    square = s * s;
    for (i = 21; i >= 1; i -= 2)
        sum = sum * square + 1.0 / i;
    return -(2 * s * sum + exponent * LN2);
}

/* exp(r) - 1, for |r| < 0.35, by its power series. */
static double
small_exp_minus_one(double r)
{
    double sum = 1;
    int i;

    for (i = 14; i >= 2; i--)
        sum = 1 + sum * r / i;
    return r * sum;
}

double
cpprof__one_minus_exp(double x)
{
    int k;

    if (x < LN2 / 2)
        return -small_exp_minus_one(-x);
    if (x > 40)
        return 1;
    /* -x = r - k ln 2 */
    k = (int)(x / LN2 + 0.5);
    return 1 - (1 + small_exp_minus_one(k * LN2 - x)) *
                   double_of(ONE_BITS - ((uint64_t)k << MANTISSA));
}

/* Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
 * generators". */
uint64_t
cpprof__hook_random(uint64_t *state)
{
    return cpprof__mix_u64(*state += CPPROF__GOLDEN);
}

/* Differs from process to process. Threads derive their seeds from it without a
 * system call. */
static uint64_t process_seed CPPROF__AT_START;

CPPROF__FIRST_STEP void
cpprof__heap_seed_process(void)
{
    uint64_t state = (uintptr_t)&state;
    long pid = cpprof__syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

    state ^= cpprof__clock_ns(CLOCK_MONOTONIC) << 10;
    state = cpprof__hook_random(&state) + (uint64_t)pid;
    store_relaxed(&process_seed, cpprof__hook_random(&state));
}

CPPROF__FIRST_STEP uint64_t
cpprof__hook_seed(const void *self)
{
    static uint64_t n_seeds CPPROF__AT_START;
    uint64_t state = (uintptr_t)self + load_relaxed(&process_seed);

    state = cpprof__hook_random(&state) + add_relaxed(&n_seeds, 1);
    return cpprof__hook_random(&state) | 1;
}

uint64_t
cpprof__heap_distance(uint64_t *state, int64_t rate)
{
    double u;

    if (rate <= 0)
        return UINT64_MAX;
    if (rate == 1)
        return 0;
    /* 2^-53 to 1, evenly */
    u = (double)((cpprof__hook_random(state) >> 11) + 1) * 0x1p-53;
    return (uint64_t)(cpprof__minus_log(u) * (double)rate);
}

uint64_t
cpprof__heap_weight(uint64_t *state, uint64_t n, int64_t rate)
{
    const uint64_t one = 1u << CPPROF__HEAP_FRACTION_BITS;
    double chance, p;

    if (rate <= 1)
        return one;
    n += n == 0;
    p = cpprof__one_minus_exp((double)n / (double)rate);
    /* 0 to 1, without 1 */
    chance = (double)(cpprof__hook_random(state) >> 11) * 0x1p-53;
    return (uint64_t)((double)one / p + chance);
}
