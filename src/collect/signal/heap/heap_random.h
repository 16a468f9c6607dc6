/* SPDX-License-Identifier: MIT */
/*
 * When the next sample is due, and what it stands for; without libm, which is
 * not to be called inside malloc. The functions below are good to 1e-9, and
 * raise no floating-point exception but "inexact".
 */
#ifndef COLLECT_SIGNAL_HEAP_RANDOM_H
#define COLLECT_SIGNAL_HEAP_RANDOM_H

#include <stdint.h>

/* -ln(u), for 0 < u <= 1 that is no denormal. */
double
cpprof__minus_log(double u);

/* 1 - exp(-x), for x >= 0. */
double
cpprof__one_minus_exp(double x);

/* At the start and in a forked child: what tells processes apart in the seeds.
 * Safety: AS. */
void
cpprof__heap_seed_process(void);

/* A seed that differs each time and in each thread; makes no system call.
 * Safety: AS. */
uint64_t
cpprof__hook_seed(const void *self);

/* The next random number of a state. */
uint64_t
cpprof__hook_random(uint64_t *state);

/* Bytes that are passed over before the next sample: exponentially distributed
 * with that mean, rounded down; a rate of 0 gives UINT64_MAX, one of 1 gives
 * 0. */
uint64_t
cpprof__heap_distance(uint64_t *state, int64_t rate);

/* How many blocks a sampled one of n bytes stands for, in fractions, rounded up
 * or down at random. Rounding to the nearest would make all blocks of one large
 * size wrong in the same direction. */
uint64_t
cpprof__heap_weight(uint64_t *state, uint64_t n, int64_t rate);

#endif
