/* SPDX-License-Identifier: MIT */
/*
 * Loads our module into CPython, for programs that do not import it themselves.
 * CPython imports sitecustomize before the program, so a folder of ours with
 * such a file goes to the front of PYTHONPATH. That file restores the variable,
 * loads the module, and imports the sitecustomize that it hid.
 */
#include "vm/load/process.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "PYTHONPATH"

/* "=" and what the variable was; "": it was not set. ORDER: sitecustomize.py */
#define FORMER_VARIABLE "CPPROF_PYTHONPATH"

static bool
find_folder(char path[PATH_MAX])
{
    static const char *const folders[] = {"cpprof/python", "bindings/python"};

    if (!cpprof__vm_find_beside(folders, "start/sitecustomize.py", path))
        return false;
    *strrchr(path, '/') = 0;
    return true;
}

/* The variable has no way to quote a colon. */
void
cpprof__vm_set_python_path(void)
{
    const char *before = getenv(VARIABLE);
    char folder[PATH_MAX], *path = NULL, *former = NULL;

    if (!dlsym(RTLD_DEFAULT, "PyEval_SetProfile") || getenv(FORMER_VARIABLE) ||
        !find_folder(folder) || strchr(folder, ':'))
        return;
    if (!before) {
        setenv(FORMER_VARIABLE, "", 1);
        setenv(VARIABLE, folder, 1);
    } else if (asprintf(&former, "=%s", before) >= 0) {
        if (asprintf(&path, "%s:%s", folder, before) >= 0) {
            setenv(FORMER_VARIABLE, former, 1);
            setenv(VARIABLE, path, 1);
            free(path);
        }
        free(former);
    }
}
