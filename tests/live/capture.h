/* SPDX-License-Identifier: MIT */
/* A capture whose profile goes into memory. */
#ifndef LIVE_CAPTURE_H
#define LIVE_CAPTURE_H

#include "memory.h"
#include "tap.h"

#include <cpprof/captures.h>

struct one {
    struct memory file;
    struct cpprof_capture *capture;
};

static inline struct profile *
end(struct one *c)
{
    struct cpprof_error error = {0};
    struct profile *p;

    if (cpprof_capture_stop(c->capture, &error))
        bail("end: %s", error.text);
    p = memory_profile(&c->file);
    if (!p)
        bail("that is no profile");
    return p;
}

static inline double
seconds_in(const struct profile *p, const char *name)
{
    return (double)profile_cpu_in(p, name) / 1e9;
}

#endif
