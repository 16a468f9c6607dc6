/* SPDX-License-Identifier: MIT */
/* A folder as a source stands for the files in it. */
#ifndef CLI_FOLDER_H
#define CLI_FOLDER_H

#include <stdbool.h>

/* Sources as they are to be read. */
struct cpprof__source_list {
    char **at;
    int n;
};

/*
 * Copy `sources`, and put in the place of a folder the files of it: those whose
 * names do not begin with a dot, in the order of their names; not those of its
 * folders. Returns false after printing what is wrong.
 */
bool
cpprof__source_list_make(char **sources, int n,
                         struct cpprof__source_list *list);
void
cpprof__source_list_free(struct cpprof__source_list *list);

#endif
