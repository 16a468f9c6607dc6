/* SPDX-License-Identifier: MIT */
/* Views into a profile as values, for use in an expression. */
#ifndef TESTS_VIEWS_H
#define TESTS_VIEWS_H

#include <cpprof/pprof/profile.h>

static inline struct pprof_info
info_of(const struct pprof_profile *p)
{
    struct pprof_info info = {.size = sizeof info};

    pprof_get_info(p, &info);
    return info;
}

static inline struct pprof_sample
sample_of(const struct pprof_profile *p, size_t index)
{
    struct pprof_sample sample = {.size = sizeof sample};

    pprof_get_sample(p, index, &sample);
    return sample;
}

#endif
