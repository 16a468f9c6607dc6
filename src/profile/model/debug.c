/* SPDX-License-Identifier: MIT */
/* Part of builds with CPPROF_CHECKED only. */
#include "profile/model/debug.h"

#include <stdio.h>

void
cpprof__debug_check(const struct pprof_profile *p)
{
    struct cpprof_error error;
    enum cpprof_status status = pprof_check(p, &error);

    if (status == CPPROF_OK || status == CPPROF_NOMEM)
        return;
    fprintf(stderr, "cpprof: broken profile: %s\n", error.text);
    abort();
}
