/* SPDX-License-Identifier: MIT */
/*
 * The functions that addresses of binaries are in: of the locations of a
 * profile without names, and of single addresses for reports that show more
 * than what was sampled. So a function is called the same here and there.
 *
 * Threads: OBJ.
 */
#ifndef SYMBOLIZE_LOOKUP_H
#define SYMBOLIZE_LOOKUP_H

#include "object/symbolizer.h"

/* Functions at one address; the deepest known have some 60. */
#define CPPROF__LOOKUP_FRAMES 256

/* Zero bytes is a valid one that knows nothing. */
struct cpprof__lookup {
    /* Set before the first binary: */
    bool functions_only;            /* no files and lines */
    bool discriminators;            /* of the lines, too */
    struct cpprof__fetcher fetcher; /* of debug files */

    const struct cpprof__symbolizer_ops *ops;
    struct cpprof__symbolizer *symbolizer;
    bool no_library; /* it cannot be loaded */
};

/*
 * Begin with the binary at path, whose build id is that text, or "". Loads the
 * library for the first one, and is cheap for one that was there before.
 *
 * Returns: its number, SIZE_MAX if there is no library or no memory: *nomem
 *          tells which.
 */
size_t
cpprof__lookup_binary(struct cpprof__lookup *l, const char *path,
                      const char *build_id, bool *nomem);

/*
 * The functions at an address, as the binary counts; the innermost first, at
 * most CPPROF__LOOKUP_FRAMES. All but the last are inlined. Their strings live
 * until the lookup is freed.
 */
size_t
cpprof__lookup_frames(struct cpprof__lookup *l, size_t binary, uint64_t address,
                      struct cpprof__frame *frames);

void
cpprof__lookup_free(struct cpprof__lookup *l);

#endif
