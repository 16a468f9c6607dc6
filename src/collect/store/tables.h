/* SPDX-License-Identifier: MIT */
/*
 * The tables that several profiles share (heap, block, mutex, threadcreate):
 * the tree of stacks, the mappings that its addresses lie in, and label sets by
 * number. They are private to the process, and a forked child has a copy; a
 * recorder sees a mirror of them (signal/tables/mirror.h).
 *
 * A node is given its mapping some time after it was made, by whoever holds the
 * lock of the tables, and at the latest before the code that it lies in is
 * unloaded. The mappings only grow, so a number stays what it was.
 */
#ifndef COLLECT_TABLES_H
#define COLLECT_TABLES_H

#include "collect/signal/tables/stack_tree.h"
#include "collect/store/store.h"

#include <stdbool.h>

/*
 * A frame of a stack: an address inside its instruction and the mapping it was
 * in. A pc below CPPROF__FRAME_END is not an address but one of the frames of
 * our own making; those of scripts are told by cpprof__is_script().
 */
struct cpprof__builder_frame {
    uint64_t pc;
    uint32_t mapping; /* index from add_mapping, or CPPROF__NO_MAPPING */
};

struct cpprof__tables {
    struct cpprof__tree tree;
    struct cpprof__store store;            /* mappings only */
    const struct cpprof__scripts *scripts; /* or NULL */
};
extern struct cpprof__tables cpprof__tables;

/* Tables of any kind found no room: CPPROF_NOMEM, and the limit that is too
 * low, if there is one. Safety: MT. */
enum cpprof_status
cpprof__tables_fail(struct cpprof_error *error);

/* Make the tables, once; later calls do nothing. Uses mmap and no allocator.
 * Errors: as cpprof__tables_fail(). Safety: MT. */
enum cpprof_status
cpprof__tables_make(struct cpprof_error *error);

/*
 * Find the mapping of every node that has none yet. Called before a profile is
 * written, by the drainer now and then, and around dlclose, after which
 * addresses may mean other code. Safety: MT. Not AS.
 */
void
cpprof__tables_resolve(void);
/* Read the maps now, so that a recorder has them. Safety: MT. Not AS. */
void
cpprof__tables_read_maps(void);
/* Code was unloaded: its nodes are not found again for new stacks. */
void
cpprof__tables_after_unload(void);

/* How often code was unloaded. What is known of an address alone holds only as
 * long as this number stays the same. */
uint32_t
cpprof__tables_n_unloads(void);

/* Around a fork, so that the tables are complete in the child. */
void
cpprof__tables_in_child(void);

/*
 * The frames of a stack, leaf first, with the mappings' numbers as numbers[]
 * has them (numbers[i], i < n_numbers, is the reader's for mapping i; nodes of
 * later ones get CPPROF__NO_MAPPING). Returns how many, at most max. Trusts
 * nothing that it reads in the tree.
 */
size_t
cpprof__tables_stack(const struct cpprof__tables *tables, uint32_t stack,
                     const uint32_t *numbers, size_t n_numbers,
                     struct cpprof__builder_frame *frames, size_t max);

#endif
