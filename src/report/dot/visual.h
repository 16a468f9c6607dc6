/* SPDX-License-Identifier: MIT */
/*
 * The nodes and edges of a drawing: those nodes are chosen that tell most, by
 * the entropy of their edges, and edges that others make redundant are left
 * out. Source: internal/graph/graph.go EntropyOrder, selectTopNodes,
 * RemoveRedundantEdges.
 */
#ifndef REPORT_VISUAL_H
#define REPORT_VISUAL_H

#include "report/dot/node_tags.h"
#include "report/graph/calls.h"

struct cpprof__visual {
    struct cpprof__trimmed t;
    struct cpprof__calls calls;
    struct cpprof__node_tags tags;
    uint8_t *redundant; /* by edge: not drawn */
};

/* v is zero bytes; free it in any case. */
enum cpprof_status
cpprof__visual_make(struct cpprof__visual *v, struct cpprof__report *r);
void
cpprof__visual_free(struct cpprof__visual *v);

/* Leave out the lightest edges of a dense graph, but for the heaviest one into
 * each node; how many. *n_left is how many there are now. */
size_t
cpprof__visual_limit_edges(struct cpprof__visual *v, size_t *n_left);

/* How many tags are drawn at a node. */
#define CPPROF__MOST_TAGS 4

#endif
