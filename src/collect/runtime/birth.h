/* SPDX-License-Identifier: MIT */
/*
 * The moment at which a process began whose sampling starts later
 * (process/late.h): samplers count from there.
 */
#ifndef COLLECT_BIRTH_H
#define COLLECT_BIRTH_H

#include <stdint.h>

struct cpprof__birth {
    int32_t tid; /* of the thread that it began with */
    /* Clocks at that moment. */
    uint64_t thread_cpu_ns;
    uint64_t process_cpu_ns;
    uint64_t mono_ns; /* CLOCK_MONOTONIC */
    uint64_t real_ns; /* CLOCK_REALTIME */
};

#endif
