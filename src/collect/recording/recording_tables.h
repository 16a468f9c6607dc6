/* SPDX-License-Identifier: MIT */
/*
 * The tables that processes left in a directory (see
 * collect/recording/recorded.h), seen from the recorder. A file is read into
 * private memory when it is needed, and as far as it holds data; nothing in it
 * is trusted.
 */
#ifndef COLLECT_RECORDING_TABLES_H
#define COLLECT_RECORDING_TABLES_H

#include <cpprof/recording.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct image;                   /* of recording.c */
struct cpprof__recorded_tables; /* of one image */

struct cpprof__recorded_set {
    struct cpprof__recorded_tables *tables;
    size_t n;
};

struct cpprof_recording {
    char directory[PATH_MAX];
    struct image *images;
    size_t n;
    size_t capacity;
    struct cpprof__recorded_set set;
};

/* PID.IMAGE.tables? */
bool
cpprof__recorded_set_is_name(const char *name);

/* Add a file to the set; a file that is no recording is skipped, and so is,
 * if only_ended, one whose process is there or was killed. Errors:
 * CPPROF_NOMEM. */
enum cpprof_status
cpprof__recorded_set_add(struct cpprof__recorded_set *set,
                         const char *directory, const char *name,
                         bool only_ended, struct cpprof_error *error);

/* All files were added: sort them by pid and then by time. */
void
cpprof__recorded_set_sort(struct cpprof__recorded_set *set);

/* Remove the files of the set. */
void
cpprof__recorded_set_remove(const struct cpprof__recorded_set *set);

void
cpprof__recorded_set_free(struct cpprof__recorded_set *set);

#endif
