/* SPDX-License-Identifier: MIT */
/*
 * The lines of source files that profiles name, looked for where the user
 * says: -source_path and -trim_path. Source: internal/report/source.go.
 *
 * The names come out of a profile, so they may be anything: only regular files
 * are read, and none that is too large.
 */
#ifndef REPORT_SOURCE_H
#define REPORT_SOURCE_H

#include "base/buffer.h"
#include "profile/model/strings.h"
#include <cpprof/status.h>

/*
 * Which files may be shown. A page shows what a profile names to whoever asks,
 * so only sources of a language, and none of /proc, /sys, /dev or of a folder
 * whose name begins with a dot below HOME; or of those only the ones below the
 * search path that the user gave. Holds for the whole process.
 */
enum cpprof__source_guard {
    CPPROF__SOURCE_ANY,
    CPPROF__SOURCE_CODE,
    CPPROF__SOURCE_SEARCHED,
};

void
cpprof__source_set_guard(enum cpprof__source_guard which);

struct cpprof__source_file;

/* Zero bytes but for the paths is a valid reader. */
struct cpprof__source {
    const char *search_path; /* folders, parted by colons */
    const char *trim_path;   /* prefixes to cut, or NULL */

    struct cpprof__strings names;
    CPPROF__ARRAY(struct cpprof__source_file) files; /* by name */
    size_t n_bytes; /* of all files that are held */
    char *own_path; /* search_path where none was given */
    bool failed;    /* out of memory */
};

/* Begin; without a source_path files are looked for in the current folder and
 * those above it. Free in any case. */
enum cpprof_status
cpprof__source_begin(struct cpprof__source *s, const char *source_path,
                     const char *trim_path, struct cpprof_error *error);
void
cpprof__source_free(struct cpprof__source *s);

/*
 * Line number `line` (from 1) of a file, without its end; NULL when there is
 * none. It stays until the next call.
 */
const char *
cpprof__source_line(struct cpprof__source *s, const char *path, size_t n_path,
                    int64_t line, size_t *n);

/* Why the file could not be read, or NULL. */
const char *
cpprof__source_error(struct cpprof__source *s, const char *path, size_t n_path);

#endif
