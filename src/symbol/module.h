/* SPDX-License-Identifier: MIT */
/*
 * All that is known about one image that a process had loaded: its file, the
 * files with its debug information, and the indexes made from them. Opened
 * when the first address is asked for.
 */
#ifndef SYMBOL_MODULE_H
#define SYMBOL_MODULE_H

#include "symbol/dwarf/frames.h"
#include "symbol/dwarf/names.h"
#include "symbol/dwarf/scopes.h"
#include "symbol/dwarf/units.h"
#include "symbol/elf/array.h"
#include "symbol/elf/code_names.h"
#include "symbol/elf/debug_file.h"
#include "symbol/elf/frame_table.h"
#include "symbol/elf/symbols.h"

/* Zero bytes with path and build_id set is a module that is not open yet. */
struct cpprof__module {
    char *path;
    char build_id[CPPROF_BUILD_ID_MAX]; /* "": the file with this inode, */
    uint64_t inode;                     /* or if it is 0 any at path */
    uint64_t map_start; /* of a mapping, for /proc/PID/map_files */
    uint64_t map_limit;

    /* Offsets in the file, or addresses where those are given, that will be
     * asked for; the file was opened for the first n_opened_for of them. */
    CPPROF__ARRAY(uint64_t) expected;
    size_t n_opened_for;
    bool takes_all; /* others are asked for, too */

    bool is_opened;
    bool has_told;      /* that debug information is missing */
    bool has_told_mini; /* that MiniDebugInfo is too large */
    bool lacks_inlines; /* of an address that was asked for: it is missing */
    bool is_broken; /* memory ran out while reading: good for closing only */
    struct cpprof__elf_file image;
    struct cpprof__elf_file debug;  /* the debug file of image, or alone */
    struct cpprof__elf_file shared; /* what dwz moved out of them */
    struct cpprof__elf_file mini;   /* MiniDebugInfo */

    struct cpprof__wanted wanted; /* what is expected, in the image */
    uint64_t text_start; /* page of the code's first byte, if image is gone */
    struct cpprof__ranges code;
    struct cpprof__symbols symbols;
    struct cpprof__frame_table frame_table; /* of image */
    struct cpprof__code_names code_names;
    struct cpprof__units units;
    struct cpprof__scopes scopes;
};

/* cpprof__resolve() will be asked for pc. */
void
cpprof__module_expect(struct cpprof__module *module,
                      const struct cpprof__symbolizer_options *options,
                      const struct cpprof__symbolizer_mapping *mapping,
                      uint64_t pc);

/* Open, and whole if a part does not say what all would. This call and the
 * next work on files, so only under cpprof__without_exit(). */
void
cpprof__module_ready(struct cpprof__module *module,
                     const struct cpprof__symbolizer_options *options);

/* The same with what address, of the image, needs. */
void
cpprof__module_ready_for(struct cpprof__module *module,
                         const struct cpprof__symbolizer_options *options,
                         uint64_t address);

/* Tell once that there is debug information, but not all of it can be read. */
void
cpprof__module_tell_lost(struct cpprof__module *module,
                         const struct cpprof__fetcher *fetcher,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The offset of pc in the file of a mapping. */
uint64_t
cpprof__module_offset(const struct cpprof__symbolizer_mapping *mapping,
                      uint64_t pc);

/* The memory that its files take, in bytes and about; 0: they are not open. */
size_t
cpprof__module_held(const struct cpprof__module *module);

/* Is what is open what lies at its path? */
bool
cpprof__module_is_current(const struct cpprof__module *module);

/* Close the files; the next address opens them again. */
void
cpprof__module_forget(struct cpprof__module *module);

void
cpprof__module_close(struct cpprof__module *module);

#endif
