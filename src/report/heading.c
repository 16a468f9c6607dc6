/* SPDX-License-Identifier: MIT */
/*
 * The lines above a table: what was profiled, when, how much of it is shown.
 * Source: internal/report/report.go ProfileLabels, reportLabels.
 */
#include "report/report.h"

#include "profile/model/path.h"

#include <string.h>
#include <time.h>

/* A filter longer than this is cut in the heading. */
#define FILTER_BYTES 80

#define LINE(r, ...) cpprof__buffer_printf(&(r)->out, __VA_ARGS__)

void
cpprof__format_value(const struct cpprof__report *r, int64_t value,
                     char text[CPPROF__LABEL_TEXT])
{
    double ratio = 1 / r->options->divide_by;

    if (ratio > 0 && ratio != 1)
        value = cpprof__to_int64((double)value * ratio);
    cpprof__scaled_label(text, value, r->sample_unit, r->output_unit);
}

void
cpprof__value_or_dot(const struct cpprof__report *r, int64_t value,
                     char text[CPPROF__LABEL_TEXT])
{
    if (value)
        cpprof__format_value(r, value, text);
    else
        memcpy(text, ".", 2);
}

void
cpprof__print_row_values(struct cpprof__report *r,
                         const struct cpprof__node *node, int64_t flat_sum)
{
    int64_t flat = cpprof__mean(node->flat, node->flat_div);
    int64_t cum = cpprof__mean(node->cum, node->cum_div);
    char flat_text[CPPROF__LABEL_TEXT], cum_text[CPPROF__LABEL_TEXT];
    char percents[3][CPPROF__PERCENT_TEXT];

    cpprof__format_value(r, flat, flat_text);
    cpprof__format_value(r, cum, cum_text);
    cpprof__percentage(percents[0], flat, r->total);
    cpprof__percentage(percents[1], flat_sum, r->total);
    cpprof__percentage(percents[2], cum, r->total);
    LINE(r, "%10s %s %s %10s %s", flat_text, percents[0], percents[1], cum_text,
         percents[2]);
}

void
cpprof__print_sums(struct cpprof__report *r, int64_t flat, int64_t cum)
{
    char flat_text[CPPROF__LABEL_TEXT], cum_text[CPPROF__LABEL_TEXT];
    char percent[CPPROF__PERCENT_TEXT];

    cpprof__format_value(r, flat, flat_text);
    cpprof__format_value(r, cum, cum_text);
    cpprof__percentage(percent, cum, r->total);
    LINE(r, "%10s %10s (flat, cum) %s", flat_text, cum_text, percent);
}

int64_t
cpprof__cutoff(int64_t v, double fraction)
{
    return cpprof__abs(cpprof__to_int64((double)v * fraction));
}

static void
binary_lines(struct cpprof__report *r)
{
    const struct cpprof__strings *strings = &r->p->strings;
    const struct pprof_mapping *m = r->p->mappings.at;
    const char *base;
    size_t n;

    if (!r->p->mappings.n)
        return;
    if (m->file) {
        base = cpprof__path_base(cpprof__strings_text(strings, m->file),
                                 cpprof__strings_n(strings, m->file), &n);
        LINE(r, "File: ");
        cpprof__buffer_append(&r->out, base, n);
        LINE(r, "\n");
    }
    if (m->build_id) {
        LINE(r, "Build ID: ");
        cpprof__append_string(r->p, m->build_id, &r->out);
        LINE(r, "\n");
    }
}

/* A line for each comment. In a heading those that begin with # are left out:
 * they are for tools. */
static void
comment_lines(struct cpprof__report *r, bool in_heading)
{
    size_t i;

    for (i = 0; i < r->p->comments.n; i++) {
        uint32_t comment = r->p->comments.at[i];

        if (in_heading && *cpprof__strings_text(&r->p->strings, comment) == '#')
            continue;
        cpprof__append_string(r->p, comment, &r->out);
        LINE(r, "\n");
    }
}

static void
time_line(struct cpprof__report *r)
{
    int64_t ns = r->p->info.time_ns;
    time_t seconds = ns / 1000000000 - (ns % 1000000000 < 0);
    struct tm tm;
    char text[64];

    if (!ns || !localtime_r(&seconds, &tm))
        return;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &tm);
    LINE(r, "Time: %s\n", text);
}

/* "Duration: 10s, Total samples = 1.12s (11.20%)"; the part in parentheses is
 * for times alone, and the space in front of it always there. */
static void
duration_line(struct cpprof__report *r)
{
    char duration[CPPROF__LABEL_TEXT], total[CPPROF__LABEL_TEXT];
    char percent[CPPROF__PERCENT_TEXT];
    int64_t ns = r->p->info.duration_ns;
    double total_ns;
    const char *unit;

    if (!ns)
        return;
    cpprof__scaled_label(duration, ns, "nanoseconds", "auto");
    cpprof__format_value(r, r->total, total);
    LINE(r, "Duration: %s, Total samples = %s ", duration, total);
    unit = cpprof__scale(r->total, r->sample_unit, "nanoseconds", &total_ns);
    if (strcmp(unit, "ns") == 0 && total_ns != 0) {
        cpprof__percentage(percent, cpprof__to_int64(total_ns), ns);
        LINE(r, "(%s)", percent);
    }
    LINE(r, "\n");
}

void
cpprof__profile_heading(struct cpprof__report *r)
{
    uint32_t type = r->p->sample_types.at[r->value].type;
    bool mean = r->divisor != CPPROF__NO_DIVISOR;

    binary_lines(r);
    comment_lines(r, true);
    if (type || mean) {
        LINE(r, "Type: %s", mean ? "mean_" : "");
        cpprof__append_string(r->p, type, &r->out);
        LINE(r, "\n");
    }
    if (r->p->info.doc_url) {
        LINE(r, "Doc: ");
        cpprof__append_string(r->p, r->p->info.doc_url, &r->out);
        LINE(r, "\n");
    }
    time_line(r);
    duration_line(r);
}

enum cpprof_status
cpprof__heading_alone(struct cpprof__report *r)
{
    cpprof__profile_heading(r);
    return CPPROF_OK;
}

enum cpprof_status
cpprof__comments(struct cpprof__report *r)
{
    comment_lines(r, false);
    return CPPROF_OK;
}

static void
filter_lines(struct cpprof__report *r)
{
    const struct pprof_report_options *o = r->options;
    const struct {
        const char *name, *value;
    } filters[] = {
        {"focus", o->focus},         {"ignore", o->ignore},
        {"hide", o->hide},           {"show", o->show},
        {"show_from", o->show_from}, {"tagfocus", o->tagfocus},
        {"tagignore", o->tagignore}, {"tagshow", o->tagshow},
        {"taghide", o->taghide},
    };
    bool any = false;
    size_t i;

    for (i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        const char *value = filters[i].value;
        size_t room = FILTER_BYTES - strlen(filters[i].name) - 1;

        if (!value || !*value)
            continue;
        if (!any)
            LINE(r, "Active filters:\n");
        any = true;
        LINE(r, "   %s=%.*s%s\n", filters[i].name, (int)room, value,
             strlen(value) > room ? "\xe2\x80\xa6" : "");
    }
}

static void
shown_lines(struct cpprof__report *r, const struct cpprof__shown *shown)
{
    char flat[CPPROF__LABEL_TEXT], total[CPPROF__LABEL_TEXT];
    char percent[CPPROF__PERCENT_TEXT];

    cpprof__format_value(r, shown->flat_sum, flat);
    cpprof__format_value(r, r->total, total);
    cpprof__percentage(percent, shown->flat_sum, r->total);
    LINE(r, "Showing nodes accounting for %s, %s of %s total\n", flat,
         percent + strspn(percent, " "), total);
    if (!r->total)
        return;
    if (shown->n_low_dropped) {
        cpprof__format_value(
            r, cpprof__cutoff(r->total, r->options->nodefraction), total);
        LINE(r, "Dropped %zu node%s (cum <= %s)\n", shown->n_low_dropped,
             shown->n_low_dropped > 1 ? "s" : "", total);
    }
    if (shown->n_edges_dropped) {
        cpprof__format_value(
            r, cpprof__cutoff(r->total, r->options->edgefraction), total);
        LINE(r, "Dropped %zu edge%s (freq <= %s)\n", shown->n_edges_dropped,
             shown->n_edges_dropped > 1 ? "s" : "", total);
    }
    if (shown->n_nodes && shown->n_nodes < shown->n_before)
        LINE(r, "Showing top %zu nodes out of %zu\n", shown->n_nodes,
             shown->n_before);
}

void
cpprof__heading(struct cpprof__report *r, const struct cpprof__shown *shown)
{
    if (!(r->options->flags & PPROF_REPORT_COMPACT_LABELS))
        cpprof__profile_heading(r);
    filter_lines(r);
    shown_lines(r, shown);
}
