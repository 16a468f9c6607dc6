/* SPDX-License-Identifier: MIT */
/*
 * Names that other code tells: _start, main, and what indirect functions
 * (STT_GNU_IFUNC) are resolved to. x86-64.
 */
#ifndef SYMBOL_CODE_NAMES_H
#define SYMBOL_CODE_NAMES_H

#include "symbol/elf/frame_table.h"
#include "symbol/elf/symbols.h"

/* Zero bytes is a valid one of an image that was not asked about. */
struct cpprof__code_names {
    bool has_choices; /* they were looked for */
    CPPROF__ARRAY(struct cpprof__choice {
        uint64_t start;
        uint64_t resolver; /* start of the one that may choose it */
    })
    choices; /* sorted */
};

/*
 * The name of the function that starts at address, or NULL. *is_sure: it is
 * called that; else it is what the function of that name is resolved to.
 */
const char *
cpprof__code_name(struct cpprof__code_names *names,
                  const struct cpprof__frame_table *table,
                  struct cpprof__symbols *symbols, uint64_t address,
                  bool *is_sure);

void
cpprof__code_names_free(struct cpprof__code_names *names);

#endif
