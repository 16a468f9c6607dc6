/* SPDX-License-Identifier: MIT */
/* The names in a folder. opendir() asks malloc, which is the program's. */
#ifndef OWN_FOLDER_H
#define OWN_FOLDER_H

#include <stdbool.h>

struct cpprof__folder {
    int fd;
    int n;  /* bytes that were read */
    int at; /* where the next name is in them */
    _Alignas(8) char entries[2048];
};

/* False: errno says why. */
bool
cpprof__folder_open(struct cpprof__folder *folder, const char *path);

/* The next name, "." and ".." too; it is good until the next call. NULL: there
 * is none; errno, which is set to 0 before, says whether that is the end. */
const char *
cpprof__folder_next(struct cpprof__folder *folder);
/* From the first one on again. */
void
cpprof__folder_rewind(struct cpprof__folder *folder);
void
cpprof__folder_close(struct cpprof__folder *folder);

#endif
