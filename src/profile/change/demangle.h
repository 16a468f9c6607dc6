/* SPDX-License-Identifier: MIT */
/* Names of C++ and Rust functions as they are written in the source. */
#ifndef PROFILE_DEMANGLE_H
#define PROFILE_DEMANGLE_H

#include "base/buffer.h"
#include <cpprof/pprof/change.h>

/*
 * Append the demangled form of a terminated mangled name, not terminated, and
 * without what compilers add for their clones of a function; false, and out
 * empty, where it is not mangled. out must be empty.
 */
bool
cpprof__demangled(const char *name, enum pprof_demangle mode,
                  struct cpprof__buffer *out);

#endif
