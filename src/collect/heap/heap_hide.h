/* SPDX-License-Identifier: MIT */
/*
 * The functions that an allocation passes through on its way from the program:
 * they stand at the leaf of every stack and say nothing. ORDER: what the
 * regular expression drops and what cpprof__heap_hides() knows are the same.
 */
#ifndef COLLECT_HEAP_HIDE_H
#define COLLECT_HEAP_HIDE_H

#include <stdbool.h>

/*
 * For drop_frames of profile.proto. Those that google/pprof knows for profiles
 * in the old formats, without its `allocate`, which is a name that programs
 * use, and without Go's; and what C libraries, jemalloc, mimalloc and the
 * standard C++ library put there today.
 */
extern const char cpprof__heap_drop_frames[];

/* Is it one of them? name as demangled, parameters and all. */
bool
cpprof__heap_hides(const char *name);

#endif
