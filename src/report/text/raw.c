/* SPDX-License-Identifier: MIT */
/*
 * -raw and -proto: the profile as the filters leave it. Both keep every
 * address, whatever granularity is asked for; only inlined functions may go.
 * Source: internal/driver/driver.go applyCommandOverrides, aggregate;
 * internal/report/report.go printProto.
 */
#include "report/report.h"

static enum cpprof_status
drop_inlined(struct cpprof__report *r)
{
    uint32_t flags = r->options->flags;
    uint32_t keep = PPROF_KEEP_FUNCTIONS | PPROF_KEEP_FILES | PPROF_KEEP_LINES |
                    PPROF_KEEP_ADDRESSES;

    if (!(flags & PPROF_REPORT_NO_INLINES))
        return CPPROF_OK;
    if (flags & PPROF_REPORT_COLUMNS)
        keep |= PPROF_KEEP_COLUMNS;
    return pprof_aggregate(r->p, keep, r->error);
}

enum cpprof_status
cpprof__raw(struct cpprof__report *r)
{
    return drop_inlined(r);
}

enum cpprof_status
cpprof__proto(struct cpprof__report *r)
{
    double ratio = 1 / r->options->divide_by;
    size_t i;

    if (ratio > 0 && ratio != 1)
        for (i = 0; i < r->p->values.n; i++)
            r->p->values.at[i] =
                cpprof__to_int64((double)r->p->values.at[i] * ratio);
    return drop_inlined(r);
}
