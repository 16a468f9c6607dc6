/* SPDX-License-Identifier: MIT */
/* guest: 2. A library that defines operator new is loaded, and called, before
 * any constructor runs; it goes, and another one comes. plugin */
#include "host.h"
#include <dlfcn.h>
#include <sys/mman.h>

#ifdef PLUGIN
void *
_Znwm(size_t n)
{
    return malloc(n);
}

void
_ZdlPv(void *address)
{
    free(address);
}

void
plugin_allocates(void)
{
    _ZdlPv(_Znwm(100));
}
#else
typedef void
work_fn(void);
static const char *file;
static void *plugin;
static work_fn *work;

static void
load(void)
{
    plugin = dlopen(file, RTLD_NOW);
    EXPECT(plugin, "%s", dlerror());
    work = (work_fn *)dlsym(plugin, "plugin_allocates");
    work();
}

/* libc is not told its environment any more when it was begun by dlopen(). */
static void
load_early(int argc, char **argv, char **environment)
{
    static const char name[] = "HOST_PLUGIN=";

    for (int i = 0; environment[i]; i++)
        if (strncmp(environment[i], name, sizeof name - 1) == 0)
            file = environment[i] + sizeof name - 1;
    load();
    environ = environment;
}

typedef void
early_fn(int argc, char **argv, char **environment);
__attribute__((section(".preinit_array"), used)) static early_fn *const first =
    load_early;

int
main(void)
{
    char *page = (char *)((uintptr_t)work & -4096ul);

    EXPECT(dlclose(plugin) == 0, "dlclose");
    /* Nothing else comes to lie there. */
    EXPECT(mmap(page, 4096, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                0) == page,
           "the plugin is still there");
    load();
    return host_wrong;
}
#endif
