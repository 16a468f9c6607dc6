/* SPDX-License-Identifier: MIT */
#include "object/plug_in.h"

#include "object/symbolizer.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool
own_file(char file[PATH_MAX])
{
    struct link_map *map;
    Dl_info info;
    ssize_t n;

    if (!dladdr1((void *)(uintptr_t)&cpprof__plug_in_load, &info, (void **)&map,
                 RTLD_DL_LINKMAP))
        return false;
    /* For the program itself the loader knows only argv[0], which need not be a
     * path. */
    if (*map->l_name)
        return snprintf(file, PATH_MAX, "%s", map->l_name) < PATH_MAX;
    n = readlink("/proc/thread-self/exe", file, PATH_MAX - 1);
    if (n < 0)
        n = readlink("/proc/self/exe", file, PATH_MAX - 1);
    if (n >= 0)
        file[n] = 0;
    return n >= 0;
}

static void *
load_beside_us(const char *name)
{
    char path[PATH_MAX + NAME_MAX + 1], file[PATH_MAX];
    const char *slash;

    if (!own_file(file))
        return NULL;
    slash = strrchr(file, '/');
    if (!slash)
        return NULL;
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *
cpprof__plug_in_load(const char *name)
{
    void *plug_in = load_beside_us(name);
    char path[PATH_MAX];

    if (plug_in)
        return plug_in;
    snprintf(path, sizeof path, "%s/%s", CPPROF_LIBDIR, name);
    plug_in = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return plug_in ? plug_in : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    const struct cpprof__symbolizer_ops *ops;
    void *plug_in = cpprof__plug_in_load("libcpprof-symbol.so");

    if (!plug_in)
        return NULL;
    ops = dlsym(plug_in, CPPROF__SYMBOLIZER_SYMBOL);
    return ops && ops->abi == CPPROF__SYMBOLIZER_ABI ? ops : NULL;
}
