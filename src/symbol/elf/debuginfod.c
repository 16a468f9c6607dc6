/* SPDX-License-Identifier: MIT */
#include "symbol/elf/debuginfod.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* Of <elfutils/debuginfod.h>, which is not needed to build. A build id of
 * length 0 is text in hex. */
struct client;

struct library {
    struct client *(*begin)(void);
    int (*find_debuginfo)(struct client *, const unsigned char *build_id,
                          int n_bytes, char **path);
    void (*end)(struct client *);
};

/* Stays loaded: the TLS library below it gives nothing back when unloaded. */
static bool
open_library(struct library *library)
{
    void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        return false;
    *(void **)&library->begin = dlsym(handle, "debuginfod_begin");
    *(void **)&library->find_debuginfo =
        dlsym(handle, "debuginfod_find_debuginfo");
    *(void **)&library->end = dlsym(handle, "debuginfod_end");
    return library->begin && library->find_debuginfo && library->end;
}

static bool
fetch(const struct library *library, const char *build_id, char **path)
{
    struct client *client = library->begin();
    int fd = -1;

    if (client)
        fd = library->find_debuginfo(client, (const unsigned char *)build_id, 0,
                                     path);
    if (fd >= 0)
        close(fd);
    if (client)
        library->end(client);
    return fd >= 0 && *path;
}

bool
cpprof__debuginfod_open(struct cpprof__elf_file *debug, const char *build_id,
                        enum cpprof__elf_use use)
{
    struct library library = {0};
    char *path = NULL;
    bool is_open = false;

    if (!*build_id || !getenv("DEBUGINFOD_URLS"))
        return false;
    if (open_library(&library) && fetch(&library, build_id, &path))
        is_open = cpprof__elf_open(debug, path, build_id, use);
    free(path);
    return is_open;
}
