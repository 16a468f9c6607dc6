/* SPDX-License-Identifier: MIT */
/*
 * Blocks of the heap that no pointer leads to any more.
 *
 * A bare clone(2) gives a child the memory of one moment, and the child looks
 * for what roots lead to, beside the program (child.h, roots.h, marks.h). It is
 * done twice: first without disturbing any thread, and only if something seems
 * lost, again after a second with all threads stopped for the moment of the
 * clone, so that their registers are known (stop.h). Lost is what was lost both
 * times, and was not freed since.
 *
 * What is claimed: a block that is listed had no pointer to it, aligned and not
 * encoded, in memory, private or shared, registers or what epoll keeps. What is
 * not known to be no root is one, so a lost block may be missing: with sampled
 * blocks there are as many lost ones as the samples stand for, or more.
 *
 * What becomes of the program: the child sends no signal at its end, is not
 * seen by wait(), has none of the program's descriptors, dies with this thread,
 * and is what a lack of memory ends first. There is no search where memory for
 * a copy of all is not there, where the program filters system calls, or where
 * our thread cannot have a table of descriptors of its own.
 */
#ifndef COLLECT_LEAK_H
#define COLLECT_LEAK_H

#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpprof__lost {
    uint32_t number; /* of the entry in the table of live blocks */
    uint32_t use;    /* of that entry, while the block is in it */
    bool is_direct;  /* nothing that is lost leads to it; or it is one block of
                        a cycle */
};

struct cpprof__leaks {
    struct cpprof__lost *lost; /* from malloc */
    size_t n_lost;
    uint64_t n_freed;    /* were lost in both, and freed since: falsely lost */
    uint64_t n_unwalked; /* live sampled blocks whose surroundings are not known
                            and that are therefore taken for reachable */
    uint64_t n_blocks;   /* all that were looked at, sampled or not */
    uint32_t n_threads;  /* that were stopped; 0: nothing seemed lost */
    uint64_t pause_ns;   /* how long they stood */
    uint64_t root_bytes, block_bytes;
    uint64_t cpu_ns; /* of the children */
    bool is_exact;   /* every block is in the table */
};

/*
 * Errors: CPPROF_UNSUPPORTED (with the reason: the allocator, no memory, no
 * right to stop threads), CPPROF_BUSY, CPPROF_NOMEM, CPPROF_SYSTEM.
 * Safety: MT. Takes more than a second where anything seems lost. Allocates.
 */
enum cpprof_status
cpprof__leaks_find(struct cpprof__leaks *leaks, struct cpprof_error *error);
void
cpprof__leaks_free(struct cpprof__leaks *leaks);

/* The program ends, and none of its threads runs any more that could change
 * anything: the second look follows at once. */
void
cpprof__leaks_at_end(void);

/* In a child made by fork. */
void
cpprof__leaks_in_child(void);

#endif
