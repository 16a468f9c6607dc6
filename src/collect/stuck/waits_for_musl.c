/* SPDX-License-Identifier: MIT */
/*
 * In the stead of waits_for.c, in a library for musl: what its locks look like
 * is not known here, so `stuck` is refused, and no wait has a holder.
 */
#include "collect/stuck/waits_for.h"

struct cpprof__waits_for
cpprof__waits_for_guess(const struct cpprof__task_call *call)
{
    return (struct cpprof__waits_for){.kind = CPPROF__FOR_NOTHING};
}

bool
cpprof__waits_for_is_true(struct cpprof__waits_for *guess,
                          const struct cpprof__task_call *call, uint32_t stack,
                          uint32_t wait_kind)
{
    return false;
}

bool
cpprof__waits_for_in_loader(uint32_t stack)
{
    return true; /* nothing is known of it */
}

int32_t
cpprof__waits_for_holder(const struct cpprof__waits_for *wait)
{
    return 0;
}

bool
cpprof__waits_for_one_of_ours(const struct cpprof__waits_for *wait)
{
    return false;
}

const char *
cpprof__waits_for_name(enum cpprof__waits_for_kind kind)
{
    return "nothing known";
}
