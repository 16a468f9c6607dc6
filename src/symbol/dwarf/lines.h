/* SPDX-License-Identifier: MIT */
/*
 * The line table of one unit: from an address to a row of file, line, column.
 *
 * libdw has line tables too, but keeps 46 bytes for each row until the whole
 * image is closed, sorts rows of functions that the linker dropped in among
 * those of live ones, and takes ten times as long; here a row takes 16 bytes,
 * a table can be given back, and dropped functions are left out.
 *
 * Source: DWARF 5, 6.2; versions 2 to 5.
 */
#ifndef SYMBOL_LINES_H
#define SYMBOL_LINES_H

#include "base/array.h"
#include "base/ranges.h"

struct cpprof__bytes {
    const uint8_t *data;
    size_t n;
};

/* The sections that line tables are made of. */
struct cpprof__line_sections {
    struct cpprof__bytes line;     /* .debug_line */
    struct cpprof__bytes line_str; /* .debug_line_str */
    struct cpprof__bytes str;      /* .debug_str */
};

struct cpprof__line_row {
    uint64_t address : 48;
    uint64_t column : 16; /* 0: unknown */
    uint32_t line;        /* 0: unknown */
    uint32_t file;
};

/* Zero bytes is a valid, empty table. */
struct cpprof__lines {
    /* Set before it is read: rows differ by their discriminators, too. */
    bool wants_discriminators;
    /* Rows of one sequence are adjacent and sorted by address. */
    CPPROF__ARRAY(struct cpprof__line_row) rows;
    CPPROF__ARRAY(uint32_t) discriminators; /* of rows, if they are wanted */
    CPPROF__ARRAY(struct cpprof__line_sequence {
        size_t first; /* in rows */
        size_t n;
    })
    sequences;
    struct cpprof__ranges ranges;            /* value: in sequences */
    CPPROF__ARRAY(const char *) directories; /* in sections */
    CPPROF__ARRAY(struct cpprof__line_file {
        const char *name; /* in a section */
        uint32_t directory;
    })
    files;
    /* Files and directories count from 1 and 0 is none, before version 5. */
    bool counts_from_one;
};

/*
 * Read the table at an offset of .debug_line, as far as it is well formed;
 * code: where code lies, other addresses are dropped.
 */
void
cpprof__lines_read(struct cpprof__lines *lines,
                   const struct cpprof__line_sections *sections,
                   uint64_t offset, const struct cpprof__ranges *code);

/* The row for address, or NULL. */
const struct cpprof__line_row *
cpprof__lines_find(const struct cpprof__lines *lines, uint64_t address);

/* The discriminator of a row of the table; 0: none, or they are not wanted. */
uint32_t
cpprof__lines_discriminator(const struct cpprof__lines *lines,
                            const struct cpprof__line_row *row);

/*
 * The file of a number, as rows and DW_AT_call_file have it; *directory is
 * NULL for that of the compilation. False when there is none.
 */
bool
cpprof__lines_file(const struct cpprof__lines *lines, uint64_t number,
                   const char **directory, const char **name);

/* Held from malloc. */
size_t
cpprof__lines_bytes(const struct cpprof__lines *lines);

void
cpprof__lines_free(struct cpprof__lines *lines);

#endif
