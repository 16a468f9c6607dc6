/* SPDX-License-Identifier: MIT */
/* Replaces folders among the sources by their files. */
#ifndef CLI_FOLDER_H
#define CLI_FOLDER_H

#include <stdbool.h>

/* Sources as they are to be read. */
struct cpprof__source_list {
    char **at;
    int n;
};

/*
 * Copy `sources`, and put in the place of a folder the files in it, in the
 * order of their names: not those whose names begin with a dot, and not those
 * of folders inside. Returns false after printing what is wrong.
 */
bool
cpprof__source_list_make(char **sources, int n,
                         struct cpprof__source_list *list);
void
cpprof__source_list_free(struct cpprof__source_list *list);

#endif
