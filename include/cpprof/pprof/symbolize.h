/* SPDX-License-Identifier: MIT */
/*
 * Names for profiles that have only addresses: gperftools, jemalloc and perf
 * write such. The binaries are looked for on this machine, and read by
 * libcpprof-symbol.so, which is loaded when there is something to read.
 *
 *     struct pprof_symbolize_options options = {.size = sizeof options};
 *
 *     pprof_find_binaries(p, NULL, &options, &error);
 *     pprof_symbolize(p, &options, &error);
 *     pprof_demangle(p, PPROF_DEMANGLE_SHORT, 0, &error);
 */
#ifndef PPROF_SYMBOLIZE_H
#define PPROF_SYMBOLIZE_H

#include <cpprof/pprof/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- types ---- */

/* struct pprof_symbolize_options flags */
#define PPROF_SYMBOLIZE_FORCE 1u /* also what has names already */
/* functions only: no files, no lines, no inlined functions */
#define PPROF_SYMBOLIZE_FAST 2u
/* also what has functions, but lacks files or lines */
#define PPROF_SYMBOLIZE_LINES 4u

/* What pprof_symbolize() can have fetched. */
enum pprof_wanted_file {
    PPROF_WANTED_DEBUG_FILE, /* separate debug information */
    PPROF_WANTED_BINARY,     /* the program or library itself */
};

struct pprof_symbolize_options {
    size_t size;    /* sizeof (struct pprof_symbolize_options) */
    uint32_t flags; /* PPROF_SYMBOLIZE_* */
    void (*warn)(void *ctx, const char *text); /* told what is missing, maybe
                                                * in several lines; or NULL */
    void *ctx;                                 /* of warn and fetch */

    /* Of pprof_symbolize() alone: files that go before those that mappings
     * name; each for the mappings that have its build id, or, where one of the
     * two has none, its name. May end in ".debug". */
    const char *const *binaries;
    size_t n_binaries;
    /* Asked for a file that is not on this machine, by its build id in hex: it
     * puts a path of n_path bytes at most into path; false: there is none.
     * NULL: nobody is asked. The file is checked. */
    bool (*fetch)(void *ctx, enum pprof_wanted_file what, const char *build_id,
                  char *path, size_t n_path);
};

/* --------------------------------------------------------------- use ---- */

/*
 * Look for the file of every mapping in a list of folders, and name the one
 * that is found in the mapping, instead of the file that ran.
 *
 * folders  parted by colons; NULL: those of $PPROF_BINARY_PATH, or, where that
 *          is not set or empty, $HOME/pprof/binaries.
 * options  NULL for defaults.
 *
 * Shape:   in each folder, for a file /dir/name of build id abcdef:
 *          abcdef/name, abcdef/ANYTHING, dir/name/abcdef, ab/cdef.debug; name,
 *          dir/name, dir/name.debug, dir/.debug/name.debug,
 *          usr/lib/debug/dir/name.debug. The first that is an ELF file of that
 *          build id is taken; any, where the mapping has no build id. A file
 *          of another build id is warned of.
 * Errors:  CPPROF_NOMEM.
 * Safety:  OBJ; reads the environment.
 * Source:  internal/driver/fetch.go locateBinaries.
 */
CPPROF_API enum cpprof_status
pprof_find_binaries(struct pprof_profile *profile, const char *folders,
                    const struct pprof_symbolize_options *options,
                    struct cpprof_error *error);

/*
 * Give the locations of every mapping that says to have no functions, files or
 * lines those that its file, or the file of its debug information, knows.
 *
 * options  NULL for defaults.
 *
 * Shape:   a location has the functions inlined at its address, the deepest
 *          first, and the function itself last. A function's name is the
 *          linker's name, as is its system name; pprof_demangle() makes
 *          it readable. A mapping is marked as having what was found in it; a
 *          location of which nothing is known stays as it is. Mappings that
 *          are no files ([vdso]) are left alone; a file that is missing, is no
 *          ELF file, or has another build id is warned of. A mapping that one
 *          of options->binaries is for is asked about as with
 *          PPROF_SYMBOLIZE_LINES.
 * Errors:  CPPROF_INVALID (flags, or a binary that is NULL). CPPROF_NOMEM; the
 *          profile is then whole, and some of it has names.
 *          CPPROF_BAD_DATA, CPPROF_SYSTEM: one of options->binaries is of no
 *          mapping, or cannot be read; the profile is as it was.
 *          CPPROF_BAD_DATA, too, if options->binaries name nothing, though
 *          the mappings that they are for lack names; the profile is whole.
 * Safety:  OBJ; loads a library.
 * Source:  internal/symbolizer, internal/binutils, internal/elfexec.
 */
CPPROF_API enum cpprof_status
pprof_symbolize(struct pprof_profile *profile,
                const struct pprof_symbolize_options *options,
                struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
