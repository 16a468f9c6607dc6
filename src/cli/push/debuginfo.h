/* SPDX-License-Identifier: MIT */
/* Symbols and lines of binaries whose frames have no names, for Pyroscope. */
#ifndef CLI_PUSH_DEBUGINFO_H
#define CLI_PUSH_DEBUGINFO_H

#include "base/buffer.h"
#include "push/plan.h"
#include "push/plugin.h"

#include <cpprof/pprof/profile.h>

/* Zero bytes with the first three is a valid one. */
struct cpprof__debuginfo {
    const struct cpprof__push_plan *plan;
    const struct cpprof__push_http *http;
    void *connection;
    struct cpprof__buffer known; /* build ids that are done with */
};

/* Upload what this machine has of each binary, if the server has none yet, and
 * have the addresses in it count as its file does: Pyroscope looks them up as
 * they are. False: the server refuses it, or there is no memory; which was
 * said. */
bool
cpprof__debuginfo_send(struct cpprof__debuginfo *d,
                       struct pprof_profile *profile);
void
cpprof__debuginfo_free(struct cpprof__debuginfo *d);

#endif
