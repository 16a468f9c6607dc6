/* SPDX-License-Identifier: MIT */
/*
 * The nodes and edges of a drawing: those nodes are chosen that tell most, by
 * the entropy of their edges, and edges that others make redundant are left
 * out. Source: internal/graph/graph.go EntropyOrder, selectTopNodes,
 * RemoveRedundantEdges.
 */
#ifndef REPORT_VISUAL_H
#define REPORT_VISUAL_H

#include "report/graph/calls.h"

/* ---------------------------------------------------- node_tags.c ------- */

/*
 * The labels of samples as tags of the nodes that they go through: all text
 * labels of a sample together are one tag, each number of the key "bytes" is
 * one below it. Source: internal/graph/graph.go addSample.
 */
struct cpprof__tag {
    uint32_t node;
    uint32_t labels; /* a text: the labels that it belongs to, or is */
    uint32_t name;   /* a text: a number as it is printed; 0: a text tag */
    uint32_t unit;   /* a string of the profile */
    int64_t number;
    int64_t flat, flat_div, cum, cum_div;
};

struct cpprof__node_tags {
    struct cpprof__strings texts;          /* of labels and names */
    CPPROF__ARRAY(struct cpprof__tag) all; /* those that are large enough */
    struct cpprof__lists by_node;
};

/* Find the tags of the first n rows. tags is zero bytes; free it in any case.
 */
enum cpprof_status
cpprof__node_tags_make(struct cpprof__node_tags *tags,
                       const struct cpprof__trimmed *t, size_t n);
void
cpprof__node_tags_free(struct cpprof__node_tags *tags);

/* The number of tags that a node has of its own, which have a flat value. */
size_t
cpprof__node_tags_count(const struct cpprof__node_tags *tags, uint32_t node);

/* ------------------------------------------------------- visual.c ------- */

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

/* At most this many tags are drawn at a node. */
#define CPPROF__MOST_TAGS 4

/* ----------------------------------------------------- dot_tags.c ------- */

/*
 * Append the boxes of a node's tags, which is drawn as N<id>; true if there
 * are any. Of a node with calls drawn out of it only its own tags are shown,
 * not those of what it calls. *failed when out of memory.
 */
bool
cpprof__dot_tags(const struct cpprof__visual *v, uint32_t node, size_t id,
                 bool has_calls, bool *failed);

#endif
