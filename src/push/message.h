/* SPDX-License-Identifier: MIT */
/* A request that brings a profile, by any of the protocols. */
#ifndef PUSH_MESSAGE_H
#define PUSH_MESSAGE_H

#include "push/plan.h"
#include "push/queue.h"

/* The profile of one kind and interval, or a part of it, gzipped. */
struct cpprof__push_profile {
    uint32_t kind; /* CPPROF_PUSH_* */
    const void *data;
    size_t n;
    int64_t from_ns, until_ns; /* since 1970 */
    const char *series;        /* its name; NULL: that of the kind */
};

/* Its name in files. */
const char *
cpprof__push_kind_name(const struct cpprof__push_plan *plan, uint32_t kind);

/* A UUID of version 4. */
void
cpprof__push_uuid(char text[37]);

/* The request that brings it, or NULL: no memory. Of OTLP, data is what the
 * plug-in made. Safety: MT. */
struct cpprof__push_message *
cpprof__push_message(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_profile *profile);

#endif
