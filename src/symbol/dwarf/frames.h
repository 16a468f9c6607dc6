/* SPDX-License-Identifier: MIT */
/*
 * What a profile says about an address that DWARF describes: the functions,
 * with their names, files and lines.
 */
#ifndef SYMBOL_FRAMES_H
#define SYMBOL_FRAMES_H

#include "object/symbolizer.h"
#include "symbol/dwarf/names.h"
#include "symbol/dwarf/scopes.h"
#include "symbol/dwarf/units.h"
#include "symbol/elf/symbols.h"

/* Where the strings come from. */
struct cpprof__frame_source {
    struct cpprof__names *names;
    struct cpprof__units *units;
    struct cpprof__scopes *scopes;
    const struct cpprof__ranges *code;
    struct cpprof__symbols *symbols;
};

/*
 * The frames of address, innermost first, at most max; of an inlined chain
 * that is longer the innermost max - 1 and the function itself. 0 when DWARF
 * does not cover the address or no name is known.
 */
size_t
cpprof__frames_find(const struct cpprof__frame_source *source, uint64_t address,
                    struct cpprof__frame *frames, size_t max);

/* The frame of the function alone, without file and line. */
size_t
cpprof__frames_find_function(const struct cpprof__frame_source *source,
                             uint64_t address, struct cpprof__frame *frame);

/* Fill in the names of a frame of which only the symbol is known; false when
 * out of memory. */
bool
cpprof__frame_of_symbol(struct cpprof__names *names, const char *symbol,
                        struct cpprof__frame *frame);

#endif
