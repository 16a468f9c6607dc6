/* SPDX-License-Identifier: MIT */
/*
 * From an address of a process to its frames, by what is known of the image.
 */
#ifndef SYMBOL_RESOLVE_H
#define SYMBOL_RESOLVE_H

#include "symbol/module.h"

/* The frames of pc, at most max, which lies in a mapping of the module. */
size_t
cpprof__resolve(struct cpprof__module *module,
                const struct cpprof__symbolizer_options *options,
                struct cpprof__names *names,
                const struct cpprof__symbolizer_mapping *mapping, uint64_t pc,
                struct cpprof__frame *frames, size_t max);

/* Has the module inlined functions, of all that was asked for? */
bool
cpprof__resolves_inlines(struct cpprof__module *module,
                         const struct cpprof__symbolizer_options *options);

#endif
