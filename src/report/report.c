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
    uint8_t *in_base = calloc(p->labels.sets.n, 1);
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
    free(in_base);
    if ((int64_t)base.total > 0)
        all = base;
    r->total = cpprof__mean((int64_t)all.total, (int64_t)all.divisor);
    return CPPROF_OK;
}

/* ----------------------------------------------------------- filters ---- */

static void
warn(const struct cpprof__report *r, const char *given, bool matched,
     const char *line)
{
    if (is_set(given) && !matched && r->options->warn)
        r->options->warn(r->options->warn_ctx, line);
}

/* All expressions of a report. */
struct expressions {
    struct cpprof__name_filter names;
    struct cpprof__regexp *show_from, *prune_from, *tagshow, *taghide;
};

static enum cpprof_status
compile(const struct cpprof__report *r, struct expressions *e)
{
    const struct pprof_report_options *o = r->options;
    const struct {
        const char *what, *text;
        struct cpprof__regexp **regexp;
    } all[] = {
        {"focus", o->focus, &e->names.focus},
        {"ignore", o->ignore, &e->names.ignore},
        {"hide", o->hide, &e->names.hide},
        {"show", o->show, &e->names.show},
        {"show_from", o->show_from, &e->show_from},
        {"prune_from", o->prune_from, &e->prune_from},
        {"tagshow", o->tagshow, &e->tagshow},
        {"taghide", o->taghide, &e->taghide},
    };
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < sizeof all / sizeof all[0] && status == CPPROF_OK; i++)
        if (is_set(all[i].text))
            status = cpprof__regexp_make(all[i].text, all[i].what,
                                         all[i].regexp, r->error);
    return status;
}

static enum cpprof_status
expressions_free(struct expressions *e, enum cpprof_status status,
                 struct cpprof_error *error)
{
    struct cpprof__regexp *all[] = {
        e->names.focus, e->names.ignore, e->names.hide, e->names.show,
        e->show_from,   e->prune_from,   e->tagshow,    e->taghide};
    size_t i;

    for (i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (status == CPPROF_OK)
            status = cpprof__regexp_status(all[i], error);
        cpprof__regexp_free(all[i]);
    }
    return status;
}

static enum cpprof_status
filter_names(struct cpprof__report *r, struct expressions *e)
{
    const struct pprof_report_options *o = r->options;
    struct cpprof__name_matches matches;
    enum cpprof_status status;
    bool matched = true;

    status = cpprof__filter_names(r->p, &e->names, &matches, r->error);
    if (status == CPPROF_OK)
        status = cpprof__show_from(r->p, e->show_from, &matched, r->error);
    if (status != CPPROF_OK)
        return status;
    warn(r, o->focus, matches.focus, "Focus expression matched no samples");
    warn(r, o->ignore, matches.ignore, "Ignore expression matched no samples");
    warn(r, o->hide, matches.hide, "Hide expression matched no samples");
    warn(r, o->show, matches.show, "Show expression matched no samples");
    warn(r, o->show_from, matched, "ShowFrom expression matched no samples");
    return CPPROF_OK;
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
    r->options->warn(r->options->warn_ctx, line);
}

static enum cpprof_status
filter_tags(struct cpprof__report *r, struct expressions *e)
{
    const struct pprof_report_options *o = r->options;
    enum cpprof_status status;
    bool tags[2], keys[2];

    warn_of_range(r, "tagfocus", o->tagfocus);
    warn_of_range(r, "tagignore", o->tagignore);
    status = cpprof__filter_tags(r->p, &r->label_units, o->tagfocus,
                                 o->tagignore, tags, r->error);
    if (status == CPPROF_OK)
        status = cpprof__filter_tag_keys(r->p, e->tagshow, e->taghide, keys,
                                         r->error);
    if (status != CPPROF_OK)
        return status;
    warn(r, o->tagfocus, tags[0], "TagFocus expression matched no samples");
    warn(r, o->tagignore, tags[1], "TagIgnore expression matched no samples");
    warn(r, o->tagshow, keys[0], "TagShow expression matched no samples");
    warn(r, o->taghide, keys[1], "TagHide expression matched no samples");
    return CPPROF_OK;
}

static enum cpprof_status
apply_filters(struct cpprof__report *r)
{
    struct expressions e = {0};
    enum cpprof_status status = compile(r, &e);

    if (status == CPPROF_OK)
        status = filter_names(r, &e);
    if (status == CPPROF_OK)
        status = filter_tags(r, &e);
    if (status == CPPROF_OK)
        status = cpprof__prune_from(r->p, e.prune_from, r->error);
    return expressions_free(&e, status, r->error);
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
    warn(r, o->tagroot, matched[0], "TagRoot expression matched no samples");
    warn(r, o->tagleaf, matched[1], "TagLeaf expression matched no samples");
    return CPPROF_OK;
}

/* ------------------------------------------------------------ report ---- */

static enum cpprof_status
check_options(const struct cpprof__report *r)
{
    const struct pprof_report_options *o = r->options;

    if (o->divide_by == 0)
        return cpprof__fail(r->error, CPPROF_INVALID, 0,
                            "zero divisor specified");
    return CPPROF_OK;
}

/* What is counted. */
static enum cpprof_status
choose_type(struct cpprof__report *r)
{
    r->divisor = r->options->flags & PPROF_REPORT_MEAN ? 0 : CPPROF__NO_DIVISOR;
    if (!r->p->sample_types.n)
        return cpprof__fail(r->error, CPPROF_BAD_DATA, 0,
                            "profile has no samples");
    return pprof_find_sample_type(r->p, r->options->sample_index, &r->value,
                                  r->error);
}

static enum cpprof_status
prepare(struct cpprof__report *r)
{
    bool relative = r->options->flags & PPROF_REPORT_RELATIVE;
    enum cpprof_status status;
    uint32_t unit;

    status = cpprof__label_units_make(r->p, &r->label_units, r->error);
    if (status == CPPROF_OK)
        status = add_tag_frames(r);
    if (status == CPPROF_OK && relative)
        status = apply_filters(r);
    if (status == CPPROF_OK)
        status = choose_type(r);
    if (status == CPPROF_OK)
        status = compute_total(r);
    if (status == CPPROF_OK && !relative)
        status = apply_filters(r);
    if (status != CPPROF_OK)
        return status;
    unit = r->p->sample_types.at[r->value].unit;
    r->output_unit = r->options->unit ? r->options->unit : "minimum";
    /* The graph may add strings and move them all; so this one is copied. */
    r->sample_unit = strdup(cpprof__strings_text(&r->p->strings, unit));
    return r->sample_unit ? CPPROF_OK : cpprof__fail_nomem(r->error);
}

/* ------------------------------------------------------------ formats ---- */

/* How a format produces its bytes. */
enum output {
    TEXT,    /* in `out` */
    DUMP,    /* the profile as text */
    PROFILE, /* the profile as profile.proto */
    STREAM,  /* through `sink`, while it is made */
};

/* A new format is a line here, an enumerator, and a function in a file of its
 * name. */
static const struct format {
    enum cpprof_status (*make)(struct cpprof__report *r);
    enum output output;
} formats[] = {
    /* ORDER: enum pprof_report_format */
    {cpprof__top, TEXT},           /* TOP */
    {cpprof__tags, TEXT},          /* TAGS */
    {cpprof__comments, TEXT},      /* COMMENTS */
    {cpprof__raw, DUMP},           /* RAW */
    {cpprof__proto, PROFILE},      /* PROTO */
    {cpprof__topproto, PROFILE},   /* TOPPROTO */
    {cpprof__tree, TEXT},          /* TREE */
    {cpprof__peek, TEXT},          /* PEEK */
    {cpprof__traces, STREAM},      /* TRACES */
    {cpprof__dot, TEXT},           /* DOT */
    {cpprof__callgrind, STREAM},   /* CALLGRIND */
    {cpprof__list, TEXT},          /* LIST */
    {cpprof__disasm, TEXT},        /* DISASM */
    {cpprof__heading_alone, TEXT}, /* HEADING */
    {cpprof__collapsed, STREAM},   /* COLLAPSED */
    {cpprof__json, STREAM},        /* JSON */
    {cpprof__flamegraph, STREAM},  /* FLAMEGRAPH */
    {cpprof__weblist, TEXT},       /* WEBLIST */
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

static enum cpprof_status
write_profile(struct cpprof__report *r, enum output output,
              struct cpprof_writer writer)
{
    return pprof_write(r->made ? r->made : r->p, &writer,
                       output == DUMP ? PPROF_FORMAT_TEXT : PPROF_FORMAT_GZIP,
                       NULL, r->error);
}

static void
report_free(struct cpprof__report *r)
{
    cpprof__buffer_free(&r->out);
    cpprof__buffer_free(&r->sink.buffer);
    cpprof__label_units_free(&r->label_units);
    free((char *)r->sample_unit);
    pprof_free(r->made);
}

enum cpprof_status
pprof_report_write(struct pprof_profile *profile,
                   const struct cpprof_writer *given,
                   enum pprof_report_format format,
                   const struct pprof_report_options *options,
                   struct cpprof_error *error)
{
    struct pprof_report_options all = PPROF_REPORT_DEFAULTS;
    struct cpprof__report r = {.p = profile, .options = &all, .error = error};
    struct cpprof_writer writer;
    enum cpprof_status status = cpprof__writer_take(given, &writer, error);

    if (status != CPPROF_OK)
        return status;
    status =
        cpprof__options(&all, sizeof all, options, "report options", error);
    if (status == CPPROF_OK)
        status = check_options(&r);
    if (status == CPPROF_OK && (size_t)format >= N_FORMATS)
        status = cpprof__fail(error, CPPROF_INVALID, 0, "no such report");
    if (status == CPPROF_OK)
        status = prepare(&r);
    r.sink.writer = writer;
    if (status == CPPROF_OK)
        status = formats[format].make(&r);
    if (status == CPPROF_OK && formats[format].output == STREAM)
        status = cpprof__sink_end(&r.sink, status, error);
    else if (status == CPPROF_OK && formats[format].output != TEXT)
        status = write_profile(&r, formats[format].output, writer);
    else
        status = write_text(&r, writer, status);
    report_free(&r);
    return status;
}
