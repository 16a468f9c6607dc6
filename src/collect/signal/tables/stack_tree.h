/* SPDX-License-Identifier: MIT */
/*
 * Stacks, each stored once: a tree that grows from the root frame, to which any
 * thread adds inside malloc, a lock call or a signal handler, without a lock.
 * Shared by the profiles that keep tables (heap, block, mutex, threadcreate). A
 * node is recycled (entries.h) if nobody holds it or a node below it, and it
 * was neither found nor added lately.
 *
 * The nodes are one block of fixed layout without pointers, so that another
 * process can read a copy of it: a node is complete before a number that refers
 * to it is given out. The index (from parent and pc to node) is this process's
 * own.
 */
#ifndef COLLECT_SIGNAL_STACK_TREE_H
#define COLLECT_SIGNAL_STACK_TREE_H

#include "collect/signal/tables/entries.h"
#include "collect/signal/tables/own_frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bound: 1 M nodes, 16 MiB, touched as they are used. */
#define CPPROF__TREE_NODES (1u << 20)

/* .mapping of a node; anything else is the mapping's number + 1. */
#define CPPROF__TREE_UNRESOLVED 0u
#define CPPROF__TREE_NO_MAPPING 0x7fffffffu /* none lists its address */
/* Or'ed in when the code was unloaded: the node is kept for what refers to it,
 * and not found again for new stacks. */
#define CPPROF__TREE_GONE 0x80000000u

/* Stacks have fewer nodes: a bound for readers of a tree that is not trusted.
 */
#define CPPROF__TREE_DEPTH 4096u

/* .parent of a node that is the first piece of a label set (label_numbers.h).
 */
#define CPPROF__TREE_LABELS UINT32_MAX

/* One frame under its caller. Node 0 is the root, above all stacks. */
struct cpprof__tree_node {
    uint64_t pc;      /* 0: not whole yet, or never used */
    uint32_t parent;  /* a node, 0, or CPPROF__TREE_LABELS */
    uint32_t mapping; /* set outside handlers, by collect/store/tables.c */
};

struct cpprof__tree_head {
    uint32_t n_nodes;   /* given out, node 0 counted; may be a little more
                         * than there are: see cpprof__tree_n_nodes() */
    uint32_t n_refused; /* stacks that found no room */
};

struct cpprof__tree {
    struct cpprof__tree_head *head;
    struct cpprof__tree_node *nodes; /* CPPROF__TREE_NODES */
    uint32_t *index;                 /* private, as what follows */
    struct cpprof__entries entries;
    uint32_t *holds; /* by number */
    uint8_t *marks;  /* by number: of recycling */
    void *reserved;  /* all of it, or NULL */
};

/* Bytes of the block of head and nodes, and of the private index. */
size_t
cpprof__tree_bytes(void);
size_t
cpprof__tree_index_bytes(void);

/* Memory for a tree that is all zero, at the first call; false: there is none.
 * Safety: AS, lock-free. */
bool
cpprof__tree_reserve(struct cpprof__tree *tree);

/* A tree in zeroed memory of these sizes. Call before any add. */
void
cpprof__tree_make(struct cpprof__tree *tree, void *block, void *index);

/*
 * The number of a stack, leaf first, n > 0; 0 when there is no room. A pc of 0
 * is left out.
 * Safety: AS, any thread, lock-free.
 */
uint32_t
cpprof__tree_add(struct cpprof__tree *tree, const uintptr_t *pcs, size_t n);

/*
 * The number of a stack that may be the one with this number, which may be
 * anything. It is quicker if it is: then the nodes are compared from the leaf
 * on, where adding asks the index for each frame.
 */
uint32_t
cpprof__tree_add_again(struct cpprof__tree *tree, uint32_t maybe,
                       const uintptr_t *pcs, size_t n);

/* The number of that stack with one more frame, pc not 0, called by its leaf.
 * Safety: AS, lock-free. */
uint32_t
cpprof__tree_add_leaf(struct cpprof__tree *tree, uint32_t stack, uintptr_t pc);

/* The number of a piece of a label set, behind the one with that number. */
uint32_t
cpprof__tree_add_piece(struct cpprof__tree *tree, uint32_t before,
                       uint64_t piece);

/* This is the process's own tree, which is recycled from now on. Safety: AS. */
void
cpprof__tree_own(struct cpprof__tree *tree);

/*
 * Hold what ends at a node of the own tree, a stack or a label set, and give it
 * back. It may be 0 or no number of a node. What was added stays for a while
 * without. Safety: AS, lock-free.
 */
void
cpprof__tree_hold(uint32_t number);
void
cpprof__tree_drop(uint32_t number);

/* Note that it is used: it stays for a while without being held. Safety: AS. */
void
cpprof__tree_use(uint32_t number);

/* How many nodes can be made. */
uint32_t
cpprof__tree_left(void);

/*
 * Reading, while others add, here or in a copy that has no index. Nothing that
 * is read is trusted. Numbers below this may be nodes.
 */
uint32_t
cpprof__tree_n_nodes(const struct cpprof__tree *tree);

/* A copy of a node; false: there is none, or it is not whole yet. */
bool
cpprof__tree_node(const struct cpprof__tree *tree, uint32_t number,
                  struct cpprof__tree_node *node);

/* Copies of a stack's nodes, leaf first; returns how many, at most max. */
size_t
cpprof__tree_stack(const struct cpprof__tree *tree, uint32_t number,
                   struct cpprof__tree_node *nodes, size_t max);

#endif
