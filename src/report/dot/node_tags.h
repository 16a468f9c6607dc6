/* SPDX-License-Identifier: MIT */
/*
 * The labels of samples as tags of the nodes that they go through: all text
 * labels of a sample together are one tag, each number of the key "bytes" is
 * one below it. Source: internal/graph/graph.go addSample.
 */
#ifndef REPORT_NODE_TAGS_H
#define REPORT_NODE_TAGS_H

#include "report/graph/trimmed.h"

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
    size_t *first; /* by node: where its tags begin in `list` */
    uint32_t *list;
};

/* Find the tags of the first n rows. tags is zero bytes; free it in any case.
 */
enum cpprof_status
cpprof__node_tags_make(struct cpprof__node_tags *tags,
                       const struct cpprof__trimmed *t, size_t n);
void
cpprof__node_tags_free(struct cpprof__node_tags *tags);

/* How many tags a node has of its own: that are flat. */
size_t
cpprof__node_tags_count(const struct cpprof__node_tags *tags, uint32_t node);

#endif
