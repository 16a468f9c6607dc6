/* SPDX-License-Identifier: MIT */
/*
 * A report in the making: the profile, what is counted, and what is to be
 * written: the text so far, or a profile.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/buffer.h"
#include "profile/filter/filter.h"
#include "profile/model/unit.h"
#include "profile/proto/sink.h"
#include "report/graph.h"

/* The order in which a view puts the frames of a stack on each other. */
enum cpprof__stack_order {
    CPPROF__FROM_ROOT,
    CPPROF__FROM_LEAF,
    /* From the outermost frame that matches `pivot`, inwards and outwards. */
    CPPROF__CALLEES,
    CPPROF__CALLERS,
};

/*
 * What the page of `cpprof http` asks for besides the options of a report. The
 * formats that need it are cpprof__..._view(), and write JSON; others leave it
 * alone.
 */
struct cpprof__view {
    enum cpprof__stack_order order;
    /* Regular expressions over names, or NULL. */
    const char *pivot, *search;
    const char *zoom; /* the box that is enlarged (flame/boxes.h), or NULL */
    double fraction;  /* boxes below this part of it are left out */
    size_t max_boxes, max_rows;
};

struct cpprof__report {
    struct pprof_profile *p;
    const struct cpprof__view *view;      /* or NULL */
    struct pprof_report_options *options; /* a copy: a format may change them */
    struct cpprof_error *error;

    size_t value;   /* the sample type that is shown */
    size_t divisor; /* what it is divided by, or CPPROF__NO_DIVISOR */
    int64_t total;  /* of all samples; percentages are of it */
    const char *sample_unit;
    const char *output_unit;
    struct cpprof__label_units label_units;
    struct cpprof__buffer out;
    struct cpprof__sink sink; /* for formats that are written piece by piece */

    /* For formats that are a profile: the one to write, instead of `out`. */
    struct pprof_profile *made; /* freed with the report; NULL: p itself */
};

/* The form in which a format leaves its result. */
enum cpprof__report_output {
    CPPROF__TEXT,    /* in `out` */
    CPPROF__DUMP,    /* the profile as text */
    CPPROF__PROFILE, /* the profile as profile.proto */
    CPPROF__STREAM,  /* through `sink`, while it is made */
};

struct cpprof__report_maker {
    enum cpprof_status (*make)(struct cpprof__report *r);
    enum cpprof__report_output output;
};

/* pprof_report_write() with a format of the caller's, and a view or NULL. */
enum cpprof_status
cpprof__report_make(struct pprof_profile *profile,
                    const struct cpprof_writer *writer,
                    const struct cpprof__report_maker *maker,
                    const struct pprof_report_options *options,
                    const struct cpprof__view *view,
                    struct cpprof_error *error);

/* Are all expressions of the options that match names or keys ones? */
enum cpprof_status
cpprof__report_check(const struct pprof_report_options *options,
                     struct cpprof_error *error);

/* The figures of the graph that a heading shows. */
struct cpprof__shown {
    int64_t flat_sum;
    size_t n_nodes;
    size_t n_before;        /* nodes before -nodecount */
    size_t n_low_dropped;   /* nodes below -nodefraction */
    size_t n_edges_dropped; /* edges below -edgefraction */
};

/* Print a value of the report's sample type. */
void
cpprof__format_value(const struct cpprof__report *r, int64_t value,
                     char text[CPPROF__LABEL_TEXT]);

/* Print a value of the report's sample type; "." for 0. */
void
cpprof__value_or_dot(const struct cpprof__report *r, int64_t value,
                     char text[CPPROF__LABEL_TEXT]);

/* Append "FLAT FLAT% SUM% CUM CUM%", the values of a row of a table; flat_sum
 * is that of all rows up to this one. */
void
cpprof__print_row_values(struct cpprof__report *r,
                         const struct cpprof__node *node, int64_t flat_sum);

/* Append "FLAT CUM (flat, cum) CUM%", the values of a function in -list and its
 * like. */
void
cpprof__print_sums(struct cpprof__report *r, int64_t flat, int64_t cum);

/* |v| * fraction, in whole units. */
int64_t
cpprof__cutoff(int64_t v, double fraction);

/* Append the lines above a table; and those of them that tell of the profile
 * alone. */
void
cpprof__heading(struct cpprof__report *r, const struct cpprof__shown *shown);
void
cpprof__profile_heading(struct cpprof__report *r);
/* The format HEADING: the lines that tell of the profile, alone. */
enum cpprof_status
cpprof__heading_alone(struct cpprof__report *r);

/*
 * Append text with its cells, each ended by a tab, set to the right in
 * columns one blank apart. A column reaches over neighbouring lines that have
 * it; what stands behind the last tab of a line belongs to none. False when
 * out of memory.
 */
bool
cpprof__tabs_align(const uint8_t *text, size_t n, struct cpprof__buffer *out);

/*
 * The formats; each fills `out`, or prepares the profile to be written.
 *
 * ORDER: formats in report.c
 */
enum cpprof_status
cpprof__top(struct cpprof__report *r);
enum cpprof_status
cpprof__tags(struct cpprof__report *r);
enum cpprof_status
cpprof__comments(struct cpprof__report *r);
enum cpprof_status
cpprof__topproto(struct cpprof__report *r);

/* The blocks of -tree, and of -peek: only nodes that match options->symbol. */
enum cpprof_status
cpprof__tree(struct cpprof__report *r);
enum cpprof_status
cpprof__peek(struct cpprof__report *r);

/* The sources of -list. */
enum cpprof_status
cpprof__list(struct cpprof__report *r);

/* The instructions of -disasm. */
enum cpprof_status
cpprof__disasm(struct cpprof__report *r);

/* The page of -weblist. */
enum cpprof_status
cpprof__weblist(struct cpprof__report *r);
/* The number that the expression is, as in a program's source; else 0. */
uint64_t
cpprof__symbol_address(const struct cpprof__report *r);

/* The expression of -peek, -list and -disasm; and that it matched nothing. */
enum cpprof_status
cpprof__symbol_regexp(const struct cpprof__report *r,
                      struct cpprof__regexp **matching);
enum cpprof_status
cpprof__fail_no_match(const struct cpprof__report *r);

/* The graph of -dot. */
enum cpprof_status
cpprof__dot(struct cpprof__report *r);

/* The graph of -callgrind. */
enum cpprof_status
cpprof__callgrind(struct cpprof__report *r);

/* Stacks for other programs, and as a page. */
enum cpprof_status
cpprof__collapsed(struct cpprof__report *r);
enum cpprof_status
cpprof__json(struct cpprof__report *r);
enum cpprof_status
cpprof__flamegraph(struct cpprof__report *r);

/* What the page of `cpprof http` shows, as JSON: stacks as boxes, the table of
 * all functions, and what there is in the profile. -tags makes JSON for a view,
 * too. */
enum cpprof_status
cpprof__boxes_view(struct cpprof__report *r);
enum cpprof_status
cpprof__table_view(struct cpprof__report *r);
/* {"value", "names"}: what the samples have in which view->search matches a
 * frame of what is enlarged, and all names that match. */
enum cpprof_status
cpprof__found_view(struct cpprof__report *r);
enum cpprof_status
cpprof__times_view(struct cpprof__report *r);
enum cpprof_status
cpprof__profile_view(struct cpprof__report *r);
/* {"profile": ..., "boxes": ...}: two of these, filtered once. */
enum cpprof_status
cpprof__first_view(struct cpprof__report *r);

/* The stacks of -traces. */
enum cpprof_status
cpprof__traces(struct cpprof__report *r);

static inline int64_t
cpprof__abs(int64_t v)
{
    return v < 0 ? (int64_t) - (uint64_t)v : v;
}

#endif
