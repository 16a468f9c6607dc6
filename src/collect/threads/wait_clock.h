/* SPDX-License-Identifier: MIT */
/*
 * Since when a thread has slept. The kernel says when a thread last ran, but in
 * the clock of the processor that it ran on, and these clocks lie seconds apart
 * on a virtual machine: what a hypervisor takes from a processor does not count
 * in its clock. So a thread of ours runs on that processor for a moment and
 * sees what its clock says now.
 */
#ifndef COLLECT_WAIT_CLOCK_H
#define COLLECT_WAIT_CLOCK_H

#include <stdint.h>

/* Of those above it nothing is known. */
#define CPPROF__PROCESSORS 1024

/* For one look, or a few that follow each other. Zero at first. */
struct cpprof__wait_clock {
    /* Of each processor: CLOCK_MONOTONIC less its clock, in ns; 0: not asked.
     */
    uint64_t behind_ns[CPPROF__PROCESSORS];
};

/* When a thread that sleeps last ran, in CLOCK_MONOTONIC, or a little later;
 * 0: not known. Safety: MT, each with a clock of its own. May start a thread.
 */
uint64_t
cpprof__wait_began(struct cpprof__wait_clock *clock, int folder, int32_t tid);

#endif
