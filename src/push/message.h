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
    const char *series;        /* its name; NULL: that of the kind. Of it, other
                                * characters than letters, digits and '_' are
                                * '_' in what is sent */
};

/* The name of a kind, and that of a profile in files. */
#define CPPROF__PUSH_SERIES_BYTES 128
const char *
cpprof__push_kind_name(const struct cpprof__push_plan *plan, uint32_t kind);
void
cpprof__push_file_kind(const struct cpprof__push_plan *plan,
                       const struct cpprof__push_profile *profile,
                       char name[CPPROF__PUSH_SERIES_BYTES]);

/* A UUID of version 4. */
void
cpprof__push_uuid(char text[37]);

/* The request that brings it, or NULL: no memory. Of OTLP, data is what the
 * plug-in made. Safety: MT. */
struct cpprof__push_message *
cpprof__push_message(const struct cpprof__push_plan *plan,
                     const struct cpprof__push_profile *profile);

#endif
