/* SPDX-License-Identifier: MIT */
/* Where the files are that interpreters load. */
#include "vm/load/process.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool
cpprof__vm_find_beside(const char *const folders[2], const char *name,
                       char path[PATH_MAX])
{
    const char *slash;
    Dl_info info;
    int i, n;

    if (!dladdr((const void *)cpprof__vm_find_beside, &info) ||
        !(slash = strrchr(info.dli_fname, '/')))
        return false;
    for (i = 0; i < 2; i++) {
        n = snprintf(path, PATH_MAX, "%.*s/%s/%s",
                     (int)(slash - info.dli_fname), info.dli_fname, folders[i],
                     name);
        if (n < PATH_MAX && !access(path, R_OK))
            return true;
    }
    return false;
}
