/* SPDX-License-Identifier: MIT */
/*
 * The functions that an allocation passes through on its way from the program:
 * they are at the leaf of every stack and tell nothing. ORDER: what the regular
 * expression drops and what cpprof__heap_hides() knows are the same.
 */
#ifndef COLLECT_HEAP_HIDE_H
#define COLLECT_HEAP_HIDE_H

#include <stdbool.h>

/*
 * For drop_frames of profile.proto. They are those that google/pprof drops from
 * profiles in the old formats, without its `allocate`, which programs use as a
 * name, and without Go's; and those that C libraries, jemalloc, mimalloc and
 * the standard C++ library have today.
 */
extern const char cpprof__heap_drop_frames[];

/* Is it one of them? name is demangled, with its parameters. */
bool
cpprof__heap_hides(const char *name);

#endif
