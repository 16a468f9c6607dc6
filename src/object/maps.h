/* SPDX-License-Identifier: MIT */
/*
 * The executable mappings of a process, from the text of /proc/PID/maps
 * (proc(5)).
 */
#ifndef OBJECT_MAPS_H
#define OBJECT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of /proc/PID/maps. path is a slice of the text, not terminated;
 * " (deleted)" is stripped and remembered. */
struct cpprof__map_line {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    uint64_t inode;
    uint32_t dev_major;
    uint32_t dev_minor;
    char perms[4]; /* as printed: "r-xp" */
    bool deleted;
    const char *path; /* may contain spaces; empty for anonymous memory */
    size_t n_path;
};

/*
 * Parse the line at *text and advance past it; false at the end. A line that
 * is not one of /proc/PID/maps is skipped.
 */
bool
cpprof__maps_next(const char **text, const char *end,
                  struct cpprof__map_line *line);

/*
 * Does a profile list this mapping? Executable, and backed by a file or a
 * named region such as [vdso]; anonymous executable memory without a name is
 * not listed (Go's rule: runtime/pprof parseProcSelfMaps).
 */
bool
cpprof__map_line_is_listed(const struct cpprof__map_line *line);

#endif
