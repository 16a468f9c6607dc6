/* SPDX-License-Identifier: MIT */
/*
 * From the linker's name of a function to the one in the source: C++ (Itanium
 * ABI) and Rust (legacy and v0), by libiberty.
 */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

#include "base/buffer.h"

/*
 * Append the demangled name; false, and nothing appended, when it is none of a
 * mangled language, too long (16 KiB in, 64 KiB out), or memory ran out.
 * C++ as c++filt prints it; Rust without the hash.
 *
 * Safety: MT. Takes up to 128 KiB of the caller's stack; long names get one of
 *         their own.
 */
bool
cpprof__demangle(struct cpprof__buffer *out, const char *mangled, size_t n);

#endif
