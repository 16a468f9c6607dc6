/* SPDX-License-Identifier: MIT */
/* The table of libcpprof-re2.so, which is re2.cc and this. */
#include "profile/filter/re2.h"

extern const struct cpprof__re2_ops cpprof__re2_ops;

__attribute__((visibility("default")))
const struct cpprof__re2_ops cpprof__re2_ops = {
    CPPROF__RE2_ABI, cpprof__re2_make, cpprof__re2_free, cpprof__re2_matches,
    cpprof__pattern_find};
