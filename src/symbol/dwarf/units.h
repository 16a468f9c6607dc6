/* SPDX-License-Identifier: MIT */
/*
 * From an address to the DIE of the function that it lies in (DWARF 4 and 5).
 *
 * Two lookups: the compilation unit, in an index of the ranges of all units,
 * made when the image is opened (where .debug_aranges told which are needed,
 * of these alone; clang does not write it); and the
 * function, in an index of its unit, made when the first address of the unit is
 * asked for. The inlined calls of a function are indexed when its first address
 * is asked for.
 */
#ifndef SYMBOL_UNITS_H
#define SYMBOL_UNITS_H

#include "symbol/dwarf/lines.h"
#include "symbol/elf/elf_file.h"

/* The inlined calls of one function, as a tree. */
struct cpprof__inlines {
    CPPROF__ARRAY(struct cpprof__inlined {
        Dwarf_Off offset; /* of the DW_TAG_inlined_subroutine */
        uint32_t parent;  /* in items; UINT32_MAX: the function itself */
    })
    items;
    struct cpprof__ranges ranges; /* value: in items; rank: depth */
};

struct cpprof__function {
    Dwarf_Off offset;                /* of the DW_TAG_subprogram */
    struct cpprof__inlines *inlines; /* NULL: not asked for yet */
};

struct cpprof__unit {
    Dwarf_Die die;  /* has the ranges and the line table */
    Dwarf_Die body; /* has the functions: a split unit, or die */
    /* How far the functions are read. */
    enum {
        CPPROF__UNIT_UNREAD,
        CPPROF__UNIT_OUTER, /* of the unit and its namespaces */
        CPPROF__UNIT_DEEP,  /* also those inside of others */
    } depth;
    CPPROF__ARRAY(struct cpprof__function) functions;
    struct cpprof__ranges ranges; /* value: in functions */
    struct cpprof__lines lines;
    enum {
        CPPROF__UNIT_UNASKED,
        CPPROF__UNIT_ALONE,
        CPPROF__UNIT_REFERS, /* to DIEs of others */
    } references;
    bool has_lines;         /* lines is read */
    const char *lost_split; /* the file that has the functions; NULL: none that
                             * was asked for is missing */
    Dwarf_Files *files;     /* of a split unit; NULL: not asked for, or none */
    size_t n_files;
};

/* Zero bytes is a valid, empty index. */
struct cpprof__units {
    CPPROF__ARRAY(struct cpprof__unit) items;
    struct cpprof__ranges ranges; /* value: in items */
    bool is_cut;                  /* the walk over the units broke off */
    bool wants_discriminators;    /* set before it is opened */
    bool has_inlines; /* a unit of a language that has functions to inline */
    struct cpprof__line_sections sections;
    struct cpprof__late_lines late_lines;
    size_t n_line_bytes; /* of all lines */
};

/* Index the DWARF of file, which must stay open as long; code: where code
 * lies. */
void
cpprof__units_open(struct cpprof__units *units,
                   const struct cpprof__elf_file *file,
                   const struct cpprof__ranges *code);
void
cpprof__units_close(struct cpprof__units *units);

/* The memory of the index and of libdw, in bytes and about. */
size_t
cpprof__units_held(const struct cpprof__units *units);

/* Has libdw opened files of split units? */
bool
cpprof__units_are_split(const struct cpprof__units *units);

/* The unit that address lies in, or NULL. */
struct cpprof__unit *
cpprof__units_find(struct cpprof__units *units, uint64_t address);

/* May a DIE of the unit refer to one that another unit has? */
bool
cpprof__unit_refers_out(struct cpprof__unit *unit);

/* The function of the unit that address lies in, or NULL. */
struct cpprof__function *
cpprof__unit_find(struct cpprof__unit *unit, uint64_t address,
                  const struct cpprof__ranges *code);

/* The line table of the unit; it lives until the next call. */
const struct cpprof__lines *
cpprof__unit_lines(struct cpprof__units *units, struct cpprof__unit *unit,
                   const struct cpprof__ranges *code);

/* The file that DW_AT_call_file names in the unit; as cpprof__lines_file(). */
bool
cpprof__unit_file(struct cpprof__units *units, struct cpprof__unit *unit,
                  uint64_t number, const char **directory, const char **name);

/* The inlined calls of the function; NULL when out of memory. */
const struct cpprof__inlines *
cpprof__function_inlines(const struct cpprof__unit *unit,
                         struct cpprof__function *function);

/* The DIE at an offset, of those of a unit; false when there is none. */
bool
cpprof__unit_die(const struct cpprof__unit *unit, Dwarf_Off offset,
                 Dwarf_Die *die);

#endif
