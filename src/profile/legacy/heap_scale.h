/* SPDX-License-Identifier: MIT */
/*
 * From the allocations that a heap profiler sampled to those that were made.
 *
 * A profiler that samples on average every `rate` bytes, as a Poisson process,
 * sees an allocation of s bytes with probability 1 - exp(-s / rate). A row of
 * a profile has a count and a sum of sizes only, so the mean size stands for
 * all of them.
 *
 * Source: profile/legacy_profile.go scaleHeapSample.
 */
#ifndef PROFILE_HEAP_SCALE_H
#define PROFILE_HEAP_SCALE_H

#include <stdint.h>

/*
 * The estimate in place of what was sampled. Zero of either is none of both; a
 * rate of 1 means that everything was sampled, one below that it is not known:
 * both stay as they are.
 */
void
cpprof__scale_heap_sample(int64_t *count, int64_t *size, int64_t rate);

#endif
