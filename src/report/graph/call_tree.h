/* SPDX-License-Identifier: MIT */
/*
 * -call_tree: a graph in which a function is a node for each way that leads to
 * it, so that it is a tree. Source: internal/graph/graph.go newTree.
 */
#ifndef REPORT_CALL_TREE_H
#define REPORT_CALL_TREE_H

#include "report/graph.h"

/*
 * Split the nodes of a graph by their callers, before values are added up. From
 * then on g->p is a view of the profile whose "locations" are positions in the
 * tree. Only its samples, frames, values, labels and strings keep their
 * meaning. No string may be added to the profile while the graph lives.
 */
enum cpprof_status
cpprof__call_tree(struct cpprof__graph *g, struct cpprof_error *error);

#endif
