/* SPDX-License-Identifier: MIT */
/*
 * Finds plug-ins and loads them (plug_in.h). They are never unloaded, and what
 * they bring ends with the process, on the thread that calls exit().
 */
#include "object/plug_in.h"

#include "base/status.h"
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

static void *
find_file(const char *name)
{
    void *plug_in = load_beside_us(name);
    char path[PATH_MAX];

    if (plug_in)
        return plug_in;
    snprintf(path, sizeof path, "%s/%s", CPPROF_LIBDIR, name);
    plug_in = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return plug_in ? plug_in : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/*
 * GnuTLS, which libmicrohttpd and libcurl bring, frees some 700 blocks when the
 * process ends, unless somebody still uses it. So we do, for good: who calls
 * exit() may be a handler that interrupted malloc, and would wait for ever.
 *
 * Source: gnutls_global_init(3).
 */
static void
use_gnutls(void *plug_in)
{
    typedef int init_fn(void);
    init_fn *init = (init_fn *)dlsym(plug_in, "gnutls_global_init");

    if (init)
        init();
}

const void *
cpprof__plug_in_load(const char *name, const char *symbol, uint32_t version,
                     struct cpprof_error *error)
{
    char file[NAME_MAX];
    const uint32_t *ops;
    const char *why;
    void *plug_in;

    snprintf(file, sizeof file, "libcpprof-%s.so", name);
    plug_in = find_file(file);
    if (!plug_in) {
        why = dlerror();
        cpprof__fail(error, CPPROF_UNSUPPORTED, 0, "%s: %s%s", name,
                     why ? why : file, why ? "" : " is not there");
        return NULL;
    }
    use_gnutls(plug_in);
    ops = dlsym(plug_in, symbol);
    if (ops && *ops == version)
        return ops;
    cpprof__fail(error, CPPROF_UNSUPPORTED, 0, "%s: %s is of another version",
                 name, file);
    return NULL;
}

struct cpprof__fetcher cpprof__fetcher;

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    return cpprof__plug_in_load("symbol", CPPROF__SYMBOLIZER_SYMBOL,
                                CPPROF__SYMBOLIZER_ABI, NULL);
}
