/* SPDX-License-Identifier: MIT */
/*
 * Which class a function without a symbol is a virtual one of: the tables of
 * virtual functions that a C++ image has as data, also when it is stripped.
 * Each has the address of its class's type information in front, which has the
 * name of the class and its bases.
 *
 * Source: Itanium C++ ABI, 2.5.2 (virtual tables) and 2.9.5 (type information).
 */
#ifndef SYMBOL_VTABLES_H
#define SYMBOL_VTABLES_H

#include "symbol/elf/array.h"
#include "symbol/elf/frame_table.h"

/* The number of a function in the part of a table that is another base's. */
#define CPPROF__OTHER_PART UINT32_MAX

/* Zero bytes is a valid one of an image that was not asked about. */
struct cpprof__vtables {
    bool is_read;
    CPPROF__ARRAY(struct cpprof__class {
        uint64_t type;    /* where its type information is */
        const char *name; /* mangled, in the file */
        uint32_t n_name;
        uint32_t first_base; /* in bases */
        uint32_t n_bases;
        bool is_unsure; /* not all of its bases or its functions are known */
        bool has_table;
        bool has_namesake;
    })
    classes;                       /* sorted by type */
    CPPROF__ARRAY(uint64_t) bases; /* numbers of classes; UINT64_MAX: unknown */
    CPPROF__ARRAY(struct cpprof__slot {
        uint64_t function;
        uint32_t class;
        uint32_t number; /* in the table, or CPPROF__OTHER_PART */
    })
    slots;                           /* sorted */
    struct cpprof__reading *reading; /* NULL but while it is read */
};

/*
 * The class that has the virtual function which begins at address, or whose
 * thunk does, and which of its functions that is; NULL where that is not sure.
 * code: where code lies. The file of `frames` must stay open as long.
 */
const struct cpprof__class *
cpprof__vtables_find(struct cpprof__vtables *tables,
                     const struct cpprof__frame_table *frames,
                     const struct cpprof__ranges *code, uint64_t address,
                     uint32_t *number);

/* Fill an empty one; it stays empty where there are none, or too many. */
void
cpprof__vtables_read(struct cpprof__vtables *tables,
                     const struct cpprof__elf_file *file,
                     const struct cpprof__ranges *code);

/* Free what reading needs; it may have been left where memory ran out. */
void
cpprof__vtables_read_end(struct cpprof__vtables *tables);

/* The memory that they take, in bytes. */
size_t
cpprof__vtables_held(const struct cpprof__vtables *tables);

void
cpprof__vtables_free(struct cpprof__vtables *tables);

#endif
