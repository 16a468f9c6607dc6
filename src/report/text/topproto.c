/* SPDX-License-Identifier: MIT */
/*
 * -topproto: the table of -top as a profile, a sample of one location for each
 * line. Source: internal/report/report.go printTopProto.
 */
#include "report/graph/trimmed.h"

#include "base/status.h"
#include "profile/model/make.h"

static uint32_t
copy_string(struct cpprof__maker *m, const struct pprof_profile *from,
            uint32_t string)
{
    return cpprof__make_string(m, cpprof__strings_text(&from->strings, string),
                               cpprof__strings_n(&from->strings, string));
}

static void
make_head(struct cpprof__maker *m, const struct cpprof__report *r)
{
    struct pprof_info *to = &m->p->info;
    const struct pprof_info *from = &r->p->info;

    cpprof__make_sample_type(m, "cum", r->output_unit);
    cpprof__make_sample_type(m, "flat", r->output_unit);
    to->time_ns = from->time_ns;
    to->duration_ns = from->duration_ns;
    to->period = from->period;
    to->period_type.type = copy_string(m, r->p, from->period_type.type);
    to->period_type.unit = copy_string(m, r->p, from->period_type.unit);
}

/* A location of one line; every node has its own. Returns the index. */
static uint32_t
make_location(struct cpprof__maker *m, const struct pprof_profile *from,
              const struct cpprof__node *node)
{
    struct pprof_profile *p = m->p;
    uint32_t at = (uint32_t)p->locations.n;
    struct pprof_line line = {node->line, node->column, 0};

    line.function = cpprof__make_function(m, copy_string(m, from, node->name),
                                          0, copy_string(m, from, node->file));
    if (m->failed || !CPPROF__ARRAY_ROOM(&p->locations, 1) ||
        !CPPROF__ARRAY_ROOM(&p->lines, 1)) {
        m->failed = true;
        return 0;
    }
    p->locations.at[p->locations.n++] = (struct pprof_location){
        .id = (uint64_t)at + 1,
        .address = node->address,
        .first_line = p->lines.n,
        .n_lines = 1,
        .mapping = PPROF_NONE,
    };
    p->lines.at[p->lines.n++] = line;
    return at;
}

static int64_t
scaled(const struct cpprof__report *r, int64_t value)
{
    double number;

    cpprof__scale(value, r->sample_unit, r->output_unit, &number);
    return cpprof__to_int64(number);
}

static enum cpprof_status
make_profile(struct cpprof__report *r, const struct cpprof__trimmed *t)
{
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    size_t i;

    if (!m.p)
        return cpprof__fail_nomem(r->error);
    r->made = m.p;
    make_head(&m, r);
    for (i = 0; i < t->rows.n && !m.failed; i++) {
        const struct cpprof__node *n = cpprof__report_row_node(t, i);
        uint32_t location = make_location(&m, r->p, n);
        int64_t values[2] = {scaled(r, cpprof__mean(n->cum, n->cum_div)),
                             scaled(r, cpprof__mean(n->flat, n->flat_div))};

        if (!m.failed)
            cpprof__make_sample(&m, &location, 1, values);
    }
    cpprof__maker_free(&m);
    return m.failed ? cpprof__fail_nomem(r->error) : CPPROF_OK;
}

enum cpprof_status
cpprof__topproto(struct cpprof__report *r)
{
    struct cpprof__trimmed t = {.r = NULL};
    enum cpprof_status status = cpprof__trimmed_make(&t, r, 0);

    if (status == CPPROF_OK) {
        cpprof__select_unit(&t, false);
        status = make_profile(r, &t);
    }
    cpprof__trimmed_free(&t);
    return status;
}
