/* SPDX-License-Identifier: MIT */
/*
 * The reader of perf's jitdump files, which tell names and lines of code made
 * at run time, the code, and where it moves to, too.
 *
 * Source: the Linux tree, tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef SYMBOL_JIT_DUMP_H
#define SYMBOL_JIT_DUMP_H

#include "symbol/jit_table.h"

/*
 * Fill an empty table with what a jitdump file says, up to where it is cut or
 * malformed. Of code that lies where other code was, the one that came later
 * counts. False when this is no such file, or of another byte order.
 */
bool
cpprof__jit_dump_read(struct cpprof__jit_table *table, const void *bytes,
                      size_t n);

#endif
