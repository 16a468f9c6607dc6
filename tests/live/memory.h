/* SPDX-License-Identifier: MIT */
/* A writer into memory that knows what became of it. */
#ifndef LIVE_MEMORY_H
#define LIVE_MEMORY_H

#include "profile.h"

#include <cpprof/writer.h>

struct memory {
    char *data;
    size_t n;
    int n_closed;
    int failed;
};

struct cpprof_writer
memory_writer(struct memory *m);

/* What was written, if that is a profile and was closed once without failure;
 * NULL otherwise, with a diagnostic. The memory is given back. */
struct profile *
memory_profile(struct memory *m);

#endif
