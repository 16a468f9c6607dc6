/* SPDX-License-Identifier: MIT */
/*
 * Loaded before a program: drops every hundredth free() of it and of its
 * libraries, cpprof's left out, and writes how many that were to the file that
 * SEEDED names.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic unsigned n_frees, n_dropped;
static void (*next_free)(void *);

__attribute__((constructor)) static void
find(void)
{
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

__attribute__((destructor)) static void
tell(void)
{
    const char *path = getenv("SEEDED");
    FILE *file = path ? fopen(path, "w") : NULL;

    if (!file)
        return;
    fprintf(file, "%u\n", n_dropped);
    fclose(file);
}

static int
is_ours(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && strstr(info.dli_fname, "libcpprof");
}

__attribute__((visibility("default"))) void
free(void *block)
{
    if (!next_free)
        find();
    if (block && ++n_frees % 100 == 0 && !is_ours(__builtin_return_address(0)))
        n_dropped++;
    else
        next_free(block);
}
