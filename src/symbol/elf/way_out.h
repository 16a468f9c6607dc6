/* SPDX-License-Identifier: MIT */
/*
 * What memory libdw and libelf work with, and how they are left when it runs
 * out. The program's malloc may be its own, hold a lock when a thread of the
 * program forks, or be what a handler interrupted: within our calls both
 * libraries have our memory (own/memory.h).
 *
 * libdw ends the process when an allocation of its own fails, unless it is
 * given a handler; what it allocates for its hash tables it does not look at,
 * and goes on with NULL. So neither of them sees a NULL: what they call to
 * allocate are functions of ours, which leave them instead.
 */
#ifndef SYMBOL_ELF_WAY_OUT_H
#define SYMBOL_ELF_WAY_OUT_H

#include <stdbool.h>
#include <stddef.h>

/* libdw and libelf allocate through this room, which saw to that when it was
 * loaded, and for as long as the process lives, whoever calls them. False:
 * their entries could not be written to, and nothing is to be read by them. */
bool
cpprof__way_out_is_ready(void);

/* From begin to end, which takes what begin() gave, calls of libdw and libelf
 * by this thread are ours: all such calls are, in here or in without_exit(). */
bool
cpprof__within_begin(void);
void
cpprof__within_end(bool before);

/* How many calls there were of others since our first one. */
unsigned
cpprof__within_n_others(void);

/*
 * Call function(arg); false when memory ran out in libdw or libelf, which were
 * then left where they stood: what the function was building must be reachable
 * from arg, and a Dwarf that it read is good for dwarf_end() only.
 */
bool
cpprof__without_exit(void (*function)(void *arg), void *arg);

/* Go back to the last without_exit() of the thread. This is also the handler of
 * every Dwarf that is read. */
void
cpprof__out_of_memory(void) __attribute__((noreturn));

/*
 * From stay() to stay_end(), which takes what stay() gave, functions of libelf
 * and libdw see a NULL: those that look at it, and hold what nobody else knows
 * of. They get one, too, for a block of more than largest bytes; stay_end()
 * tells whether there was such a one.
 */
void *
cpprof__stay(size_t largest);
bool
cpprof__stay_end(void *before);

#endif
