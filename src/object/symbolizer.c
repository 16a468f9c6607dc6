/* SPDX-License-Identifier: MIT */
/* Finds and loads the plug-in, for all who need names. */
#include "object/symbolizer.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUG_IN "libcpprof-symbol.so"

/* The plug-in beside the file that this code is in: a build folder, or an
 * installation outside the loader's path. */
static void *
load_beside_us(void)
{
    char path[PATH_MAX + sizeof PLUG_IN], file[PATH_MAX];
    const char *slash;
    struct link_map *map;
    Dl_info info;
    ssize_t n;

    if (!dladdr1((void *)(uintptr_t)&cpprof__symbolizer_load, &info,
                 (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    /* The program itself has no name but argv[0], which may mean nothing. */
    if (*map->l_name)
        snprintf(file, sizeof file, "%s", map->l_name);
    else if ((n = readlink("/proc/thread-self/exe", file, sizeof file - 1)) >=
                 0 ||
             (n = readlink("/proc/self/exe", file, sizeof file - 1)) >= 0)
        file[n] = 0;
    else
        return NULL;
    slash = strrchr(file, '/');
    if (!slash)
        return NULL;
    snprintf(path, sizeof path, "%.*s/" PLUG_IN, (int)(slash - file), file);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    static const char *const places[] = {CPPROF_LIBDIR "/" PLUG_IN, PLUG_IN};
    const struct cpprof__symbolizer_ops *ops;
    void *plug_in = load_beside_us();
    size_t i;

    for (i = 0; !plug_in && i < sizeof places / sizeof *places; i++)
        plug_in = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (!plug_in)
        return NULL;
    ops = dlsym(plug_in, CPPROF__SYMBOLIZER_SYMBOL);
    return ops && ops->abi == CPPROF__SYMBOLIZER_ABI ? ops : NULL;
}
