/* SPDX-License-Identifier: MIT */
/*
 * The debug information of a stripped image: a file of its own, found by build
 * id or by name; the part that dwz moved into a file shared by several; and
 * the small symbol table that some distributions leave inside (MiniDebugInfo).
 *
 * Source: the GDB manual, "Debugging Information in Separate Files" and
 * "MiniDebugInfo".
 */
#ifndef SYMBOL_DEBUG_FILE_H
#define SYMBOL_DEBUG_FILE_H

#include "object/symbolizer.h"
#include "symbol/elf/elf_file.h"

/* The system's tree of debug files, "/usr/lib/debug"; tests use another. */
extern const char *cpprof__debug_root;

/*
 * Open the debug file of image, which was loaded from path. A file of another
 * build id is never used; one without any must have the checksum that
 * .gnu_debuglink asks for.
 */
bool
cpprof__debug_file_open(struct cpprof__elf_file *debug,
                        const struct cpprof__elf_file *image, const char *path,
                        enum cpprof__elf_use use);

/* The same by build id alone, for an image that is gone. */
bool
cpprof__debug_file_open_by_id(struct cpprof__elf_file *debug,
                              const char *build_id, enum cpprof__elf_use use);

/* Open the file that .gnu_debugaltlink of file names, if there is one, and tell
 * file->dwarf. The name of one that is not there, or not the one; or NULL. */
const char *
cpprof__debug_file_open_shared(struct cpprof__elf_file *shared,
                               const struct cpprof__elf_file *file,
                               const struct cpprof__fetcher *fetcher);

/* Tunable: .gnu_debugdata that is more is not read. The largest programs have
 * some 20 MB of symbols. */
#define CPPROF__MINI_BYTES ((size_t)64 << 20)

/* Unpack .gnu_debugdata of image. False: there is none, or it is more than
 * CPPROF__MINI_BYTES, and *is_too_large. */
bool
cpprof__debug_file_open_mini(struct cpprof__elf_file *mini,
                             const struct cpprof__elf_file *image,
                             bool *is_too_large);

/* Have the debug file brought, and open it; false when nobody brings files or
 * what came is not it. */
bool
cpprof__debug_file_fetch(struct cpprof__elf_file *debug,
                         const struct cpprof__fetcher *fetcher,
                         const char *build_id, enum cpprof__elf_use use);

#endif
