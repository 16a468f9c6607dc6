/* SPDX-License-Identifier: MIT */
#include "collect/symbols.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PLUG_IN "libcpprof-symbol.so"

/* The plug-in beside the file that this code is in: a build folder, or an
 * installation outside the loader's path. */
static void *
load_beside_us(void)
{
    char path[PATH_MAX];
    const char *slash;
    Dl_info info;

    if (!dladdr((void *)(uintptr_t)&cpprof__symbolizer_load, &info) ||
        !info.dli_fname)
        return NULL;
    slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return NULL;
    snprintf(path, sizeof path, "%.*s/" PLUG_IN, (int)(slash - info.dli_fname),
             info.dli_fname);
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
