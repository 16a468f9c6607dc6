/* SPDX-License-Identifier: MIT */
/*
 * The part of a graph that a report shows: nodes that are large enough, in
 * order, at most so many, and the edges between them.
 *
 * The reference builds its graph anew whenever it leaves out nodes, which only
 * changes the edges. So here values are added up once, and edges are found
 * once, when the nodes that will be shown are known.
 */
#ifndef REPORT_TRIMMED_H
#define REPORT_TRIMMED_H

#include "report/report.h"

/* A node that is shown. */
struct cpprof__report_row {
    uint32_t node;
    uint32_t n_name;
    size_t name; /* offset in names */
    /* Rows are sorted by these, the largest without its sign first. */
    int64_t score, second_score;
};

struct cpprof__trimmed {
    struct cpprof__report *r;
    struct cpprof__graph g;
    CPPROF__ARRAY(struct cpprof__report_row)
    rows; /* in the order of the report */
    struct cpprof__buffer names;
    struct cpprof__shown shown;
    int64_t node_cutoff; /* nodes and tags below it are not shown */
    int64_t edge_cutoff; /* edges below it are not shown */
    size_t nodecount;    /* at most so many rows; 0: no limit */
    bool rebuilt;        /* nodes were left out, and edges lead around them */
    bool failed;         /* no memory for comparing */
};

#define CPPROF__TRIM_TREE 4u /* -call_tree makes a tree of it */

/* Make the graph and choose its rows; `how` is of CPPROF__GRAPH_* and
 * CPPROF__TRIM_TREE. t is zero bytes; free it in any case. */
enum cpprof_status
cpprof__trimmed_make(struct cpprof__trimmed *t, struct cpprof__report *r,
                     unsigned how);

/*
 * The same in steps, for formats that sort by something else: make the graph
 * and leave out small nodes; sort the rows by their scores, then by name; keep
 * the first n of them.
 */
enum cpprof_status
cpprof__trimmed_begin(struct cpprof__trimmed *t, struct cpprof__report *r,
                      unsigned how);
enum cpprof_status
cpprof__trimmed_sort(struct cpprof__trimmed *t);
void
cpprof__trimmed_end(struct cpprof__trimmed *t, size_t n);

/* Find all edges between the nodes that are kept; those that were found before
 * go. */
enum cpprof_status
cpprof__trimmed_edges(struct cpprof__trimmed *t);

void
cpprof__trimmed_free(struct cpprof__trimmed *t);

static inline const struct cpprof__node *
cpprof__report_row_node(const struct cpprof__trimmed *t, size_t row)
{
    return &t->g.nodes.at[t->rows.at[row].node];
}

/* One byte for each node that may be on a path: all, or where nodes were left
 * out the rows alone. Freed by the caller; NULL when out of memory. */
uint8_t *
cpprof__trimmed_kept(const struct cpprof__trimmed *t);

/*
 * Fix the unit of the whole report: that of its smallest value, or one that
 * lets it be 0.01 where the largest is in another unit, unless the smallest
 * value is to be a whole number.
 */
void
cpprof__select_unit(struct cpprof__trimmed *t, bool whole);

#endif
