/* SPDX-License-Identifier: MIT */
/*
 * An ELF image that is open for reading: from a file, whose descriptor is
 * closed again before this returns (the profiled program may close or reuse
 * any descriptor), or from bytes in memory.
 *
 * The image is mapped, not copied: a large one costs only the pages that are
 * looked at. The price is that a file which is truncated in place meanwhile is
 * a SIGBUS; compilers and package managers replace files instead.
 */
#ifndef SYMBOL_ELF_FILE_H
#define SYMBOL_ELF_FILE_H

#include "base/ranges.h"
#include "object/build_id.h"
#include "symbol/elf/needed.h"
#include "symbol/elf/unpack.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <sys/types.h>
#include <time.h>

/* Where a part of the file lies in memory: PT_LOAD. */
struct cpprof__segment {
    uint64_t offset;
    uint64_t address;
    uint64_t n_bytes; /* in the file */
};

/* Zero bytes is a valid image that is not open. */
struct cpprof__elf_file {
    Elf *elf;
    Dwarf *dwarf;    /* NULL: none, or not asked for */
    char *path;      /* NULL for an image in memory */
    void *copy;      /* the bytes of an image in memory */
    void **unpacked; /* room of sections that were packed */
    size_t n_unpacked;
    size_t n_unpacked_bytes;
    /* Of the last such room what is free again. It has its pages. */
    struct cpprof__spare {
        char *at;
        uint64_t n;
    } spare;
    struct cpprof__late_lines late_lines; /* not unpacked yet */
    const Elf_Data *shared_link;          /* .gnu_debugaltlink, or NULL */
    struct cpprof__segment *segments;     /* that are loaded */
    size_t n_segments;
    struct cpprof__file_state { /* when it was opened */
        dev_t dev;
        ino_t inode;
        off_t n_bytes;
        struct timespec modified;
    } state;
    /* Given before it is opened: what will be asked for; NULL: anything. If
     * these are offsets they are made addresses. */
    struct cpprof__wanted *wanted;
    struct cpprof__needed needed; /* the units of these */
    bool is_partial;              /* .debug_info has only them */
    bool is_packed; /* libelf cannot unpack debug information: dwarf is NULL */
    char build_id[CPPROF_BUILD_ID_MAX]; /* "": has none */
};

/* What to read of a file beside its headers. */
enum cpprof__elf_use {
    CPPROF__ELF_SYMBOLS, /* elf only */
    CPPROF__ELF_DWARF,   /* dwarf too, if the file has .debug_info */
};

/*
 * Open the plain file at path; false, and *file untouched, when it is not ELF
 * or when its build id is not the one wanted ("": any will do).
 */
bool
cpprof__elf_open(struct cpprof__elf_file *file, const char *path,
                 const char *build_id, enum cpprof__elf_use use);

/* Set file->dwarf, if the file is open and has .debug_info and it is not set.
 */
void
cpprof__elf_open_dwarf(struct cpprof__elf_file *file);

/* Take over n bytes from malloc as an image; false when it is none. */
bool
cpprof__elf_open_memory(struct cpprof__elf_file *file, void *image, size_t n);

void
cpprof__elf_close(struct cpprof__elf_file *file);

/* Lies at its path what was opened? True for one that is not open, or in
 * memory. */
bool
cpprof__elf_is_current(const struct cpprof__elf_file *file);

/* The section of a name, its header in *header; NULL when there is none or it
 * is empty in this file (SHT_NOBITS, in a file of debug information). */
Elf_Scn *
cpprof__elf_section(const struct cpprof__elf_file *file, const char *name,
                    GElf_Shdr *header);

/* Has it such a section? False for a file that is not open. */
bool
cpprof__elf_has_section(const struct cpprof__elf_file *file, const char *name);

/* Has it debug information, packed or not? */
static inline bool
cpprof__elf_has_dwarf(const struct cpprof__elf_file *file)
{
    return cpprof__elf_has_section(file, ".debug_info") ||
           cpprof__elf_has_section(file, ".zdebug_info");
}

/* Where the byte at an offset lies in memory. False: it is not loaded, or the
 * file is not open. */
bool
cpprof__elf_address(const struct cpprof__elf_file *file, uint64_t offset,
                    uint64_t *address);

/* Where code lies: the executable sections, or segments where the section
 * headers are stripped; value: index of the section. */
void
cpprof__elf_code(const struct cpprof__elf_file *file,
                 struct cpprof__ranges *code);

#endif
