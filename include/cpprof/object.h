/* SPDX-License-Identifier: MIT */
/*
 * What profiles say of the objects that a process has mapped: the lines of
 * /proc/PID/maps, and the build ids of ELF files.
 *
 *     struct cpprof_map map = {.size = sizeof map};
 *     const char *at = text;
 *
 *     while (cpprof_maps_next(&at, text + strlen(text), &map))
 *         printf("%.*s\n", (int)map.n_path, map.path);
 */
#ifndef CPPROF_OBJECT_H
#define CPPROF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cpprof/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line of /proc/PID/maps; proc(5). */
struct cpprof_map {
    size_t size; /* sizeof (struct cpprof_map) */
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    uint64_t inode;
    uint32_t dev_major;
    uint32_t dev_minor;
    char perms[4]; /* as printed, not terminated: "r-xp" */
    bool deleted;  /* " (deleted)" stood behind the path, which is without it */
    const char *path; /* may contain spaces; empty for anonymous memory */
    size_t n_path;    /* it is a part of the text, not terminated */
};

/*
 * Read the next line of a text that begins at *text and ends before end, and
 * move *text behind that line. Lines that /proc/PID/maps does not have are
 * skipped.
 *
 * map      the caller sets its size, and the call fills the rest.
 *
 * Returns  false when no line is left, or when map->size is no size of a
 * struct. Owner:   map->path points into the text. Safety:  MT. AS. Source:  Go
 * profile.ParseProcMaps, which returns only executable mappings.
 */
CPPROF_API bool
cpprof_maps_next(const char **text, const char *end, struct cpprof_map *map);

/*
 * Does a profile list this mapping? One that is executable, and backed by a
 * file or by a named region such as [vdso].
 *
 * Safety:  MT. AS.
 * Source:  Go runtime/pprof parseProcSelfMaps.
 */
CPPROF_API bool
cpprof_map_is_listed(const struct cpprof_map *map);

/* Room for the digits of a build id of 32 bytes and a zero byte. A longer id is
 * cut. */
#define CPPROF_BUILD_ID_MAX 65

/*
 * Read the GNU build id of the ELF file at path, as hexadecimal digits. The
 * file may be of 32 or 64 bits and of either byte order.
 *
 * text     CPPROF_BUILD_ID_MAX bytes.
 *
 * Errors:  CPPROF_BAD_DATA ("malformed ELF binary", "no NT_GNU_BUILD_ID found
 *          in ELF binary"), CPPROF_SYSTEM (the file cannot be read, or is no
 *          regular file).
 * Safety:  MT. Not AS.
 * Source:  Go runtime/pprof elfBuildID.
 */
CPPROF_API enum cpprof_status
cpprof_build_id_of_file(const char *path, char *text,
                        struct cpprof_error *error);

#ifdef __cplusplus
}
#endif

#endif
