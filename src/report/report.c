/* SPDX-License-Identifier: MIT */
/*
 * From options to text: choose the sample type, apply the filters, make the
 * report, write it. The order of the steps is the reference's
 * (internal/driver/driver.go generateRawReport) and shows: totals are counted
 * before the filters, unless percentages are to be relative.
 */
#include "report/report.h"

#include "base/options.h"
#include "base/status.h"
#include "base/writer.h"
#include "own/memory.h"

#include <cpprof/pprof/build.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_set(const char *text)
{
    return text && *text;
}

/* ------------------------------------------------------------- total ---- */

/* By label set: does it mark samples of the base of a comparison? */
static bool
is_diff_base(const struct pprof_profile *p, uint32_t set)
{
    size_t n, i;
    const struct pprof_label *l = cpprof__label_set(&p->labels, set, &n);

    for (i = 0; i < n; i++)
        if (l[i].kind == PPROF_LABEL_TEXT &&
            strcmp(cpprof__strings_text(&p->strings, l[i].key),
                   "pprof::base") == 0 &&
            strcmp(cpprof__strings_text(&p->strings, l[i].text), "true") == 0)
            return true;
    return false;
}

struct sum {
    uint64_t total, divisor;
};

static void
add_to(struct sum *sum, const struct cpprof__report *r, const int64_t *values)
{
    sum->total += (uint64_t)cpprof__abs(values[r->value]);
    if (r->divisor != CPPROF__NO_DIVISOR)
        sum->divisor += (uint64_t)values[r->divisor];
}

/* The sum of all values without their signs; in a comparison with a base, of
 * the base alone. */
static enum cpprof_status
compute_total(struct cpprof__report *r)
{
    const struct pprof_profile *p = r->p;
    struct sum all = {0, 0}, base = {0, 0};
    uint8_t *in_base = cpprof__calloc(p->labels.sets.n, 1);
    size_t i;

    if (!in_base)
        return cpprof__fail_nomem(r->error);
    for (i = 0; i < p->labels.sets.n; i++)
        in_base[i] = is_diff_base(p, (uint32_t)i);
    for (i = 0; i < p->samples.n; i++) {
        add_to(&all, r, cpprof__values(p, i));
        if (in_base[p->samples.at[i].labels])
            add_to(&base, r, cpprof__values(p, i));
    }
    cpprof__free(in_base);
    if ((int64_t)base.total > 0)
        all = base;
    r->total = cpprof__mean((int64_t)all.total, (int64_t)all.divisor);
    return CPPROF_OK;
}

/* ----------------------------------------------------------- filters ---- */

/* The expression of a filter that is given matched nothing. */
static void
warn(const struct cpprof__report *r, const char *given, bool matched,
     const char *filter)
{
    char line[64];

    if (!is_set(given) || matched || !r->options->warn)
        return;
    snprintf(line, sizeof line, "%s expression matched no samples", filter);
    r->options->warn(r->options->ctx, line);
}

/* Digits may also be meant as a name. */
static void
warn_of_range(const struct cpprof__report *r, const char *name,
              const char *expression)
{
    const char *range = cpprof__tag_range(expression);
    char line[256];

    if (!range || !r->options->warn)
        return;
    snprintf(line, sizeof line, "%s:Interpreted '%s' as range, not regexp",
             name, range);
    r->options->warn(r->options->ctx, line);
}

/* The expressions of a report; NULL where none is given. */
enum expression {
    FOCUS,
    IGNORE,
    HIDE,
    SHOW,
    SHOW_FROM,
    PRUNE_FROM,
    TAGSHOW,
    TAGHIDE,
    N_EXPRESSIONS,
};

static enum cpprof_status
filter(struct cpprof__report *r, struct cpprof__regexp *const *e)
{
    const struct pprof_report_options *o = r->options;
    const struct cpprof__name_filter names = {.focus = e[FOCUS],
                                              .ignore = e[IGNORE],
                                              .hide = e[HIDE],
                                              .show = e[SHOW]};
    struct cpprof__name_matches matches;
    enum cpprof_status status;
    bool from = true, tags[2], keys[2];

    status = cpprof__filter_names(r->p, &names, &matches, r->error);
    if (status == CPPROF_OK)
        status = cpprof__show_from(r->p, e[SHOW_FROM], &from, r->error);
    if (status != CPPROF_OK)
        return status;
    warn(r, o->focus, matches.focus, "Focus");
    warn(r, o->ignore, matches.ignore, "Ignore");
    warn(r, o->hide, matches.hide, "Hide");
    warn(r, o->show, matches.show, "Show");
    warn(r, o->show_from, from, "ShowFrom");
    warn_of_range(r, "tagfocus", o->tagfocus);
    warn_of_range(r, "tagignore", o->tagignore);
    status = cpprof__filter_tags(r->p, &r->label_units, o->tagfocus,
                                 o->tagignore, tags, r->error);
    if (status == CPPROF_OK)
        status = cpprof__filter_tag_keys(r->p, e[TAGSHOW], e[TAGHIDE], keys,
                                         r->error);
    if (status != CPPROF_OK)
        return status;
    warn(r, o->tagfocus, tags[0], "TagFocus");
    warn(r, o->tagignore, tags[1], "TagIgnore");
    warn(r, o->tagshow, keys[0], "TagShow");
    warn(r, o->taghide, keys[1], "TagHide");
    return cpprof__prune_from(r->p, e[PRUNE_FROM], r->error);
}

/* Free them in any case. */
static enum cpprof_status
make_expressions(const struct pprof_report_options *o,
                 struct cpprof__regexp *e[N_EXPRESSIONS],
                 struct cpprof_error *error)
{
    const struct {
        const char *what, *text;
    } all[N_EXPRESSIONS] = {
        [FOCUS] = {"focus", o->focus},
        [IGNORE] = {"ignore", o->ignore},
        [HIDE] = {"hide", o->hide},
        [SHOW] = {"show", o->show},
        [SHOW_FROM] = {"show_from", o->show_from},
        [PRUNE_FROM] = {"prune_from", o->prune_from},
        [TAGSHOW] = {"tagshow", o->tagshow},
        [TAGHIDE] = {"taghide", o->taghide},
    };
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < N_EXPRESSIONS && status == CPPROF_OK; i++)
        if (is_set(all[i].text))
            status =
                cpprof__regexp_make(all[i].text, all[i].what, &e[i], error);
    return status;
}

/* Are these expressions of labels? They are read by the filter itself. */
static enum cpprof_status
check_labels(const struct pprof_report_options *options,
             struct cpprof_error *error)
{
    const struct cpprof__label_units units = {0};
    struct pprof_profile *empty = NULL;
    enum cpprof_status status = pprof_new(&empty, error);
    bool matched[2];

    if (status == CPPROF_OK)
        status = cpprof__filter_tags(empty, &units, options->tagfocus,
                                     options->tagignore, matched, error);
    pprof_free(empty);
    return status;
}

enum cpprof_status
cpprof__report_check(const struct pprof_report_options *options,
                     struct cpprof_error *error)
{
    struct cpprof__regexp *e[N_EXPRESSIONS] = {NULL};
    enum cpprof_status status = make_expressions(options, e, error);
    size_t i;

    for (i = 0; i < N_EXPRESSIONS; i++)
        cpprof__regexp_free(e[i]);
    return status == CPPROF_OK ? check_labels(options, error) : status;
}

static enum cpprof_status
apply_filters(struct cpprof__report *r)
{
    struct cpprof__regexp *e[N_EXPRESSIONS] = {NULL};
    enum cpprof_status status = make_expressions(r->options, e, r->error);
    size_t i;

    if (status == CPPROF_OK)
        status = filter(r, e);
    for (i = 0; i < N_EXPRESSIONS; i++) {
        if (status == CPPROF_OK)
            status = cpprof__regexp_status(e[i], r->error);
        cpprof__regexp_free(e[i]);
    }
    return status;
}

static enum cpprof_status
add_tag_frames(struct cpprof__report *r)
{
    const struct pprof_report_options *o = r->options;
    enum cpprof_status status;
    bool matched[2];

    if (!is_set(o->tagroot) && !is_set(o->tagleaf))
        return CPPROF_OK;
    status = cpprof__add_tag_frames(r->p, o->tagroot, o->tagleaf, o->unit,
                                    matched, r->error);
    if (status != CPPROF_OK)
        return status;
    warn(r, o->tagroot, matched[0], "TagRoot");
    warn(r, o->tagleaf, matched[1], "TagLeaf");
    return CPPROF_OK;
}

/* ------------------------------------------------------------ report ---- */

static enum cpprof_status
prepare(struct cpprof__report *r)
{
    bool relative = r->options->flags & PPROF_REPORT_RELATIVE;
    enum cpprof_status status;
    uint32_t unit;

    status = cpprof__label_units_make(r->p, &r->label_units, r->error);
    if (status == CPPROF_OK && r->options->warn)
        status = cpprof__label_units_tell(
            r->p, &r->label_units, r->options->warn, r->options->ctx, r->error);
    if (status == CPPROF_OK)
        status = add_tag_frames(r);
    if (status == CPPROF_OK && relative)
        status = apply_filters(r);
    r->divisor = r->options->flags & PPROF_REPORT_MEAN ? 0 : CPPROF__NO_DIVISOR;
    if (status == CPPROF_OK && !r->p->sample_types.n)
        status = cpprof__fail(r->error, CPPROF_BAD_DATA, 0,
                              "profile has no samples");
    if (status == CPPROF_OK)
        status = pprof_find_sample_type(r->p, r->options->sample_index,
                                        &r->value, r->error);
    if (status == CPPROF_OK)
        status = compute_total(r);
    if (status == CPPROF_OK && !relative)
        status = apply_filters(r);
    if (status != CPPROF_OK)
        return status;
    unit = r->p->sample_types.at[r->value].unit;
    r->output_unit = r->options->unit ? r->options->unit : "minimum";
    /* The graph may add strings and move them all; so this one is copied. */
    r->sample_unit = cpprof__strdup(cpprof__strings_text(&r->p->strings, unit));
    return r->sample_unit ? CPPROF_OK : cpprof__fail_nomem(r->error);
}

/* ------------------------------------------------------------ formats ---- */

/* -raw and -proto are the profile as the filters leave it. Both keep every
 * address, whatever granularity is asked for; only inlined functions may go.
 * Source: internal/driver/driver.go applyCommandOverrides, aggregate;
 * internal/report/report.go printProto. */

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

static enum cpprof_status
raw(struct cpprof__report *r)
{
    return drop_inlined(r);
}

static enum cpprof_status
proto(struct cpprof__report *r)
{
    double ratio = 1 / r->options->divide_by;
    size_t i;

    if (ratio > 0 && ratio != 1)
        for (i = 0; i < r->p->values.n; i++)
            r->p->values.at[i] =
                cpprof__to_int64((double)r->p->values.at[i] * ratio);
    return drop_inlined(r);
}

/* A new format is a line here, an enumerator, and a function, in a file of its
 * name unless it is short. */
static const struct cpprof__report_maker formats[] = {
    /* ORDER: enum pprof_report_format */
    {cpprof__top, CPPROF__TEXT},           /* TOP */
    {cpprof__tags, CPPROF__TEXT},          /* TAGS */
    {cpprof__comments, CPPROF__TEXT},      /* COMMENTS */
    {raw, CPPROF__DUMP},                   /* RAW */
    {proto, CPPROF__PROFILE},              /* PROTO */
    {cpprof__topproto, CPPROF__PROFILE},   /* TOPPROTO */
    {cpprof__tree, CPPROF__TEXT},          /* TREE */
    {cpprof__peek, CPPROF__TEXT},          /* PEEK */
    {cpprof__traces, CPPROF__STREAM},      /* TRACES */
    {cpprof__dot, CPPROF__TEXT},           /* DOT */
    {cpprof__callgrind, CPPROF__STREAM},   /* CALLGRIND */
    {cpprof__list, CPPROF__TEXT},          /* LIST */
    {cpprof__disasm, CPPROF__TEXT},        /* DISASM */
    {cpprof__heading_alone, CPPROF__TEXT}, /* HEADING */
    {cpprof__collapsed, CPPROF__STREAM},   /* COLLAPSED */
    {cpprof__json, CPPROF__STREAM},        /* JSON */
    {cpprof__flamegraph, CPPROF__STREAM},  /* FLAMEGRAPH */
    {cpprof__weblist, CPPROF__TEXT},       /* WEBLIST */
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

static enum cpprof_status
write_text(struct cpprof__report *r, struct cpprof_writer writer,
           enum cpprof_status status)
{
    int failure = 0, close_failure = 0;

    if (status == CPPROF_OK && r->out.failed)
        status = cpprof__fail_nomem(r->error);
    if (status == CPPROF_OK)
        failure = writer.write(writer.ctx, r->out.data, r->out.n);
    if (writer.close)
        close_failure = writer.close(writer.ctx, status || failure);
    if (!failure)
        failure = close_failure;
    if (status == CPPROF_OK && failure)
        status = cpprof__fail(r->error, CPPROF_SYSTEM, failure,
                              "writing the report: %s", strerror(failure));
    return status;
}

enum cpprof_status
cpprof__report_make(struct pprof_profile *profile,
                    const struct cpprof_writer *given,
                    const struct cpprof__report_maker *maker,
                    const struct pprof_report_options *options,
                    const struct cpprof__view *view, struct cpprof_error *error)
{
    struct pprof_report_options all = PPROF_REPORT_DEFAULTS;
    struct cpprof__report r = {
        .p = profile, .view = view, .options = &all, .error = error};
    struct cpprof_writer writer;
    enum cpprof_status status;

    status = cpprof__writer_take(given, &writer, error);
    if (status != CPPROF_OK)
        return status;
    status =
        cpprof__options(&all, sizeof all, options, "report options", error);
    if (status == CPPROF_OK && all.divide_by == 0)
        status =
            cpprof__fail(error, CPPROF_INVALID, 0, "zero divisor specified");
    if (status == CPPROF_OK && !maker)
        status = cpprof__fail(error, CPPROF_INVALID, 0, "no such report");
    if (status == CPPROF_OK)
        status = prepare(&r);
    r.sink.writer = writer;
    if (status == CPPROF_OK)
        status = maker->make(&r);
    if (status == CPPROF_OK && maker->output == CPPROF__STREAM)
        status = cpprof__sink_end(&r.sink, status, error);
    else if (status == CPPROF_OK && maker->output != CPPROF__TEXT)
        status = pprof_write(r.made ? r.made : profile, &writer,
                             maker->output == CPPROF__DUMP ? PPROF_FORMAT_TEXT
                                                           : PPROF_FORMAT_GZIP,
                             NULL, error);
    else
        status = write_text(&r, writer, status);
    cpprof__buffer_free(&r.out);
    cpprof__buffer_free(&r.sink.buffer);
    cpprof__label_units_free(&r.label_units);
    cpprof__free((char *)r.sample_unit);
    pprof_free(r.made);
    return status;
}

enum cpprof_status
pprof_report_write(struct pprof_profile *profile,
                   const struct cpprof_writer *given,
                   enum pprof_report_format format,
                   const struct pprof_report_options *options,
                   struct cpprof_error *error)
{
    CPPROF__NEED_BESIDES(given, error, profile);
    return cpprof__report_make(
        profile, given, (size_t)format < N_FORMATS ? &formats[format] : NULL,
        options, NULL, error);
}

enum cpprof_status
pprof_report_write_to_path(struct pprof_profile *profile, const char *path,
                           enum pprof_report_format format,
                           const struct pprof_report_options *options,
                           struct cpprof_error *error)
{
    return CPPROF__TO_PATH(
        path, error,
        pprof_report_write(profile, &writer, format, options, error));
}
