/* SPDX-License-Identifier: MIT */
/*
 * libdw ends the process when an allocation of its own fails, unless it is
 * given a handler, which must not return. This one jumps back to the last
 * cpprof__without_exit() of the thread.
 */
#ifndef SYMBOL_OUT_OF_MEMORY_H
#define SYMBOL_OUT_OF_MEMORY_H

#include <stdbool.h>

/* For dwarf_new_oom_handler() of every Dwarf that is read. */
void
cpprof__out_of_memory(void) __attribute__((noreturn));

/*
 * Call function(arg); false when libdw ran out of memory in it, which was then
 * left where it stood: what it was building must be reachable from arg, and a
 * Dwarf that it read is good for dwarf_end() only.
 */
bool
cpprof__without_exit(void (*function)(void *arg), void *arg);

#endif
