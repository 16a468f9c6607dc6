/* SPDX-License-Identifier: MIT */
/*
 * Names and lines of code made at run time. Code lies where other code lay
 * before, so all of it is kept, in the order in which it came, and a search may
 * ask for a moment: how long the file was that told of the code.
 *
 * Fill with add, then seal, then find.
 */
#ifndef SYMBOL_JIT_TABLE_H
#define SYMBOL_JIT_TABLE_H

#include "base/array.h"
#include "base/buffer.h"

/* Tunable: code beyond is left out. With 64 MB of text the table takes four
 * times as much. */
#define CPPROF__JIT_CODES (2u << 20)

/* Zero bytes is a valid, empty table. */
struct cpprof__jit_table {
    struct cpprof__buffer text;
    CPPROF__ARRAY(struct cpprof__jit_code {
        uint64_t start;
        uint64_t n_bytes;
        uint64_t file_end; /* of what tells of it. Once sealed, no later code
                            * has a lower one */
        uint32_t name;     /* offset in text */
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
    bool is_cut; /* there was more code */

    /* What covers an address: a segment tree over the stretches between two
     * bounds. The codes of node i are the numbers from first[i] up to
     * first[i + 1], in order. */
    struct cpprof__jit_tree {
        uint64_t *bounds;
        size_t n; /* stretches */
        uint32_t *first;
        uint32_t *numbers;
    } tree;
};

/* Strings without an end. */
struct cpprof__jit_place {
    const char *name;
    size_t n_name;
    const char *file; /* or NULL */
    size_t n_file;
    uint32_t line; /* 0: unknown */
};

/* start + n_bytes is no more than UINT64_MAX. */
void
cpprof__jit_table_add(struct cpprof__jit_table *table,
                      const struct cpprof__jit_code *code);

/* Without memory it finds nothing. */
void
cpprof__jit_table_seal(struct cpprof__jit_table *table);

/* The code at pc that came last when the file had n_bytes, or, if none had come
 * by then, the next that did. False: there is none, or it has no name. */
bool
cpprof__jit_table_find(const struct cpprof__jit_table *table, uint64_t pc,
                       uint64_t n_bytes, struct cpprof__jit_place *place);

void
cpprof__jit_table_free(struct cpprof__jit_table *table);

#endif
