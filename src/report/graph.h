/* SPDX-License-Identifier: MIT */
/*
 * What reports are made of: nodes, which are the lines of a report, and the
 * values that samples bring them. Source: internal/graph/graph.go.
 */
#ifndef REPORT_GRAPH_H
#define REPORT_GRAPH_H

#include "base/buffer.h"
#include "profile/model/model.h"
#include <cpprof/pprof/report.h>

/* Sums wrap around on overflow, as the reference's do. */
struct cpprof__node {
    /* The key: no two nodes have the same. Strings are numbers; 0 is unknown.
     */
    uint64_t address;
    int64_t line;
    int64_t column;
    uint32_t name;
    uint32_t file;
    uint32_t object;    /* the mapping's file, where there is no name, or where
                         * objects are asked for */
    uint32_t context;   /* in a tree: the node that calls it, + 1; 0: a root */
    int64_t start_line; /* of the function, where objects are asked for */
    uint32_t origin;    /* in a tree: number of the first node like this but
                         * for its context; else its own */

    int64_t flat, flat_div; /* of samples that end in it */
    int64_t cum, cum_div;   /* of samples that it is in, each once */
};

#define CPPROF__NO_NODE UINT32_MAX

/* Nodes are fewer than this, so that bits may be added to their numbers. */
#define CPPROF__MOST_NODES ((size_t)1 << 30)
#define CPPROF__SEVERAL    (1u << 31)
#define CPPROF__OUTERMOST  (1u << 31)

/* The calls of one node by another. */
struct cpprof__edge {
    uint32_t from, to;
    bool is_inline;   /* every call along it was inlined */
    bool is_residual; /* some call along it went over nodes that are left out */
    int64_t weight;
    int64_t divisor; /* of the mean; 0 without one */
};

struct cpprof__graph {
    struct pprof_profile *p;
    size_t value;   /* which value of a sample */
    size_t divisor; /* which one it is divided by, or CPPROF__NO_DIVISOR */

    CPPROF__ARRAY(struct cpprof__node) nodes;
    struct cpprof__index index; /* nodes by what makes them */

    /* The nodes of location i, innermost first: location_nodes from
     * first_node[i] up to first_node[i + 1]. */
    size_t *first_node;
    CPPROF__ARRAY(uint32_t) location_nodes;
    size_t most_nodes; /* that any location has */
    /* The same in less memory: the node of location i if there is only one.
     * Otherwise CPPROF__SEVERAL and the position in `several` at which its
     * nodes begin; the last of them has CPPROF__OUTERMOST. */
    uint32_t *only_node;
    CPPROF__ARRAY(uint32_t) several;

    /* Filled in with the values. Of a location with several nodes, by half of
     * where they begin: what the samples that it is in add up to, each as
     * often as it has it. */
    int64_t *several_sums;
    bool any_negative; /* some sample has a negative value */
    /* By sample that counts for anything: how many frames, from the root, it
     * has in common with the one before that does. */
    uint32_t *shared;

    CPPROF__ARRAY(struct cpprof__edge) edges;
    /* By node: only edges that begin or end in one of these are wanted; NULL:
     * all are. Not the graph's own. */
    const uint8_t *only_ends;

    /* The graph's own p, of a tree (call_tree.c); NULL otherwise. */
    struct pprof_profile *view;
};

#define CPPROF__NO_DIVISOR SIZE_MAX

#define CPPROF__GRAPH_OBJECTS                                                  \
    1u /* equal functions of different files are different nodes */
#define CPPROF__GRAPH_BARE                                                     \
    2u /* nodes without functions are named by address                         \
        */

/* Make the nodes of all locations of g->p as the options say, and
 * CPPROF__GRAPH_* besides. g is zero bytes but for p, value and divisor; free
 * it in any case. */
enum cpprof_status
cpprof__graph_make(struct cpprof__graph *g,
                   const struct pprof_report_options *options, unsigned how,
                   struct cpprof_error *error);
void
cpprof__graph_free(struct cpprof__graph *g);

/* Fill in first_node[locations of p], only_node, several and most_nodes from
 * the rest of first_node, and location_nodes. */
enum cpprof_status
cpprof__graph_index(struct cpprof__graph *g, struct cpprof_error *error);

/*
 * Make a tree of a graph, for -call_tree: split its nodes by their callers,
 * before values are added up. From then on g->p is a view of the profile whose
 * "locations" are positions in the tree. Only its samples, frames, values,
 * labels and strings keep their meaning. No string may be added to the profile
 * while the graph lives. Source: internal/graph/graph.go newTree.
 */
enum cpprof_status
cpprof__call_tree(struct cpprof__graph *g, struct cpprof_error *error);

/* Add up flat and cum of all nodes. */
enum cpprof_status
cpprof__graph_add_values(struct cpprof__graph *g, struct cpprof_error *error);

/*
 * Find the edges that end in a node that is watched. kept and watched have a
 * byte for each node, not 0 for those that are; nodes that are not kept are as
 * if they were not on the stack.
 */
enum cpprof_status
cpprof__graph_add_edges(struct cpprof__graph *g, const uint8_t *kept,
                        const uint8_t *watched, struct cpprof_error *error);

/* A sum that wraps around. */
static inline int64_t
cpprof__add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t
cpprof__subtract(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* The number of a triple in a table of them: 0, 1, ... in the order in which
 * they come. CPPROF__INDEX_NONE when there is no memory. */
uint32_t
cpprof__keys_number(struct cpprof__table *keys, uint32_t a, uint32_t b,
                    uint32_t c);
/* How many there are. */
size_t
cpprof__keys_count(const struct cpprof__table *keys);

/* Records by one of their fields, which is a number: those that have i in it
 * are list[first[i]] up to first[i + 1], in their order. */
struct cpprof__lists {
    size_t *first;
    uint32_t *list;
};

/* List n records of n_bytes each by the uint32_t at `offset` in them, which is
 * below n_keys. False when out of memory; free it in any case. */
bool
cpprof__lists_make(struct cpprof__lists *lists, const void *records, size_t n,
                   size_t n_bytes, size_t offset, size_t n_keys);
void
cpprof__lists_free(struct cpprof__lists *lists);

/* How many frames two stacks have in common, from the root. */
static inline size_t
cpprof__shared_frames(const uint32_t *a, size_t n_a, const uint32_t *b,
                      size_t n_b)
{
    size_t n = n_a < n_b ? n_a : n_b, i = 0;

    while (i < n && a[n_a - 1 - i] == b[n_b - 1 - i])
        i++;
    return i;
}

/* What a sample counts for; the divisor is 0 where there is none. */
static inline int64_t
cpprof__sample_value(const struct cpprof__graph *g, size_t sample,
                     int64_t *divisor)
{
    const int64_t *values = cpprof__values(g->p, sample);

    *divisor = 0;
    if (g->divisor != CPPROF__NO_DIVISOR)
        *divisor = values[g->divisor];
    return values[g->value];
}

/* The mean where there is a divisor. */
static inline int64_t
cpprof__mean(int64_t sum, int64_t divisor)
{
    if (divisor == -1) /* the least number has no opposite */
        return (int64_t) - (uint64_t)sum;
    return divisor ? sum / divisor : sum;
}

/* How a node's name is printed. A NULL member leaves its part as it is. */
struct cpprof__name_style {
    const char *separator; /* between the parts, instead of a blank */
    /* Append a function's name. */
    void (*name)(const char *text, size_t n, struct cpprof__buffer *out);
    /* Append a file's name, which is then without its folder. */
    void (*file)(const char *text, size_t n, struct cpprof__buffer *out);
    size_t most; /* bytes of a name that are shown; 0: all */
};

/* How many of n bytes are shown where at most `most` are (0: all), without
 * a half character at the end. */
size_t
cpprof__utf8_prefix(const char *text, size_t n, size_t most);

/* Append a string of a profile. */
static inline void
cpprof__append_string(const struct pprof_profile *p, uint32_t string,
                      struct cpprof__buffer *out)
{
    cpprof__buffer_append(out, cpprof__strings_text(&p->strings, string),
                          cpprof__strings_n(&p->strings, string));
}

/* The name of a node as it is printed; appended without a terminator. */
void
cpprof__node_name_in(const struct cpprof__graph *g,
                     const struct cpprof__node *node,
                     const struct cpprof__name_style *style,
                     struct cpprof__buffer *out);
void
cpprof__node_name(const struct cpprof__graph *g,
                  const struct cpprof__node *node, struct cpprof__buffer *out);

/* The order of two nodes that are equal in all that is printed: by all they
 * are made of, as text. *failed is set when there is no memory for it. */
int
cpprof__node_compare(const struct cpprof__graph *g,
                     const struct cpprof__node *a, const struct cpprof__node *b,
                     bool *failed);

#endif
