/* SPDX-License-Identifier: MIT */
/*
 * Aggregation: clears names, files, lines or addresses in place. A merge then
 * joins what differed only in these.
 */
#include "base/status.h"
#include "profile/model/check.h"
#include "profile/model/model.h"

/* Each flag of mappings, and what must be kept for it to stay. */
static const struct {
    uint32_t keep, flag;
} mapping_flags[] = {
    {PPROF_KEEP_INLINES, PPROF_HAS_INLINE_FRAMES},
    {PPROF_KEEP_FUNCTIONS, PPROF_HAS_FUNCTIONS},
    {PPROF_KEEP_FILES, PPROF_HAS_FILENAMES},
    {PPROF_KEEP_LINES, PPROF_HAS_LINE_NUMBERS},
};

static void
forget_flags(struct pprof_profile *p, uint32_t keep)
{
    uint32_t forget = 0;
    size_t i;

    for (i = 0; i < sizeof mapping_flags / sizeof mapping_flags[0]; i++)
        if (!(keep & mapping_flags[i].keep))
            forget |= mapping_flags[i].flag;
    for (i = 0; i < p->mappings.n; i++)
        p->mappings.at[i].flags &= ~forget;
}

static void
forget_names(struct pprof_profile *p, uint32_t keep)
{
    size_t i;

    for (i = 0; i < p->functions.n; i++) {
        struct pprof_function *f = &p->functions.at[i];

        if (!(keep & PPROF_KEEP_FUNCTIONS))
            f->name = f->system_name = 0;
        if (!(keep & PPROF_KEEP_FILES))
            f->file = 0;
    }
}

static void
forget_lines(struct pprof_profile *p, struct pprof_location *l, uint32_t keep)
{
    struct pprof_line *lines;
    size_t i;

    if (!l->n_lines) /* there may be no table at all */
        return;
    lines = p->lines.at + l->first_line;
    for (i = 0; i < l->n_lines; i++) {
        if (!(keep & PPROF_KEEP_LINES))
            lines[i].line = lines[i].column = 0;
        if (!(keep & PPROF_KEEP_COLUMNS))
            lines[i].column = 0;
    }
}

enum cpprof_status
pprof_aggregate(struct pprof_profile *p, uint32_t keep,
                struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    size_t i;

    forget_flags(p, keep);
    forget_names(p, keep);
    for (i = 0; i < p->locations.n; i++) {
        struct pprof_location *l = &p->locations.at[i];

        if (!(keep & PPROF_KEEP_INLINES) && l->n_lines > 1) {
            l->first_line += l->n_lines - 1;
            l->n_lines = 1;
        }
        forget_lines(p, l, keep);
        if (!(keep & PPROF_KEEP_ADDRESSES))
            l->address = 0;
    }
    cpprof__debug_check(p);
    return CPPROF_OK;
}
