/* SPDX-License-Identifier: MIT */
/*
 * Names and lines of code made at run time: the table of them, and the reader
 * of perf's jitdump files, which have native code, and where it moves to, too.
 *
 * Source: the Linux tree, tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef SYMBOL_JIT_DUMP_H
#define SYMBOL_JIT_DUMP_H

#include "base/array.h"
#include "base/buffer.h"
#include "base/ranges.h"

/* Zero bytes is a valid, empty table. */
struct cpprof__jit_table {
    struct cpprof__buffer text;
    struct cpprof__ranges ranges; /* value: index of codes, later wins */
    CPPROF__ARRAY(struct cpprof__jit_code {
        uint64_t start;
        uint64_t n_bytes;
        uint32_t name; /* offset in text */
        uint32_t n_name;
        uint32_t first_line; /* in lines */
        uint32_t n_lines;
        /* Of a dump, while it is read: */
        uint64_t time;
        uint64_t index;    /* what the code is called after it has moved */
        uint32_t position; /* in the file */
        bool is_moved;     /* has no name yet */
    })
    codes;
    CPPROF__ARRAY(struct cpprof__jit_line {
        uint64_t offset; /* in the code, of the first byte */
        uint32_t line;
        uint32_t file; /* offset in text */
        uint32_t n_file;
    })
    lines;
};

/* Strings without an end. */
struct cpprof__jit_place {
    const char *name;
    size_t n_name;
    const char *file; /* or NULL */
    size_t n_file;
    uint32_t line; /* 0: unknown */
};

/*
 * Fill an empty table with what a jitdump file says, up to where it is cut or
 * malformed. Of code that lies where other code was, the one that came later
 * counts. False when this is no such file, or of another byte order.
 */
bool
cpprof__jit_dump_read(struct cpprof__jit_table *table, const void *bytes,
                      size_t n);

bool
cpprof__jit_table_find(const struct cpprof__jit_table *table, uint64_t pc,
                       struct cpprof__jit_place *place);

void
cpprof__jit_table_free(struct cpprof__jit_table *table);

#endif
