/* SPDX-License-Identifier: MIT */
/* A folder of a test. Include after cmocka.h. */
#ifndef TESTS_FOLDER_FIXTURE_H
#define TESTS_FOLDER_FIXTURE_H

#include <dirent.h>
#include <stdbool.h>
#include <unistd.h>

/* How many files it has, or had. */
static inline size_t
folder_files(const char *folder, bool remove_them)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        n += *entry->d_name != '.';
        if (remove_them)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return n;
}

#endif
