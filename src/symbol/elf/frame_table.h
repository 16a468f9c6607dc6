/* SPDX-License-Identifier: MIT */
/*
 * Where the functions of an image begin and end that have no symbol: the frame
 * table (.eh_frame, found by the search table of .eh_frame_hdr) has an entry
 * for each piece of code that can be unwound, also in stripped images.
 *
 * The file is read where it is mapped, by the reader that the unwinder uses, so
 * only images of this machine's kind are understood.
 */
#ifndef SYMBOL_FRAME_TABLE_H
#define SYMBOL_FRAME_TABLE_H

#include "base/array.h"
#include "collect/signal/unwind/cfi.h"
#include "symbol/elf/elf_file.h"

/* Zero bytes is a valid table of an image that has none. */
struct cpprof__frame_table {
    struct cpprof__cfi cfi;
    uintptr_t base; /* what the reader takes for address 0 of the image */
    const struct cpprof__elf_file *file;
    bool has_parts; /* parts were looked for */
    CPPROF__ARRAY(struct cpprof__part {
        uint64_t start;
        uint64_t limit;
        uint64_t parent; /* start of its function, 0: unknown */
    })
    parts;
};

/* A piece of code, and the function that it is of. */
struct cpprof__piece {
    uint64_t start;
    uint64_t function; /* where the function starts; of a part that the compiler
                          moved away this is elsewhere */
};

/* The file must stay open as long as the table. */
void
cpprof__frame_table_open(struct cpprof__frame_table *table,
                         const struct cpprof__elf_file *file);

/* The piece that covers address; false: there is none. */
bool
cpprof__frame_table_find(struct cpprof__frame_table *table, uint64_t address,
                         struct cpprof__piece *piece);

void
cpprof__frame_table_free(struct cpprof__frame_table *table);

/* The bytes of code at an address, *n of them; NULL: there is no code. */
const uint8_t *
cpprof__frame_table_code(const struct cpprof__frame_table *table,
                         uint64_t address, size_t *n);

#endif
