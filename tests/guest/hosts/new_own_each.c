/* SPDX-License-Identifier: MIT */
/* guest: 2. Two plug-ins that bring an operator new of their own, and are kept
 * apart from each other, call each its own. plugin */
#include "host.h"
#include <dlfcn.h>
#include <fcntl.h>

#ifdef PLUGIN
static unsigned n_new, n_delete;

void *
_Znwm(size_t n)
{
    n_new++;
    return malloc(n);
}

void
_ZdlPv(void *address)
{
    n_delete++;
    free(address);
}

bool
plugin_has_its_own(void)
{
    unsigned before = n_new + n_delete;

    _ZdlPv(_Znwm(100));
    return n_new + n_delete == before + 2;
}
#else
typedef bool
has_its_own_fn(void);

static has_its_own_fn *
load(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    EXPECT(plugin, "%s", dlerror());
    return plugin ? (has_its_own_fn *)dlsym(plugin, "plugin_has_its_own")
                  : NULL;
}

/* The same library once more, in the stead of another. */
static has_its_own_fn *
load_copy(const char *path)
{
    char copy[64], buffer[65536];
    int from = open(path, O_RDONLY), to;
    has_its_own_fn *loaded;
    ssize_t n;

    snprintf(copy, sizeof copy, "./new_own_each.%d.so", (int)getpid());
    to = open(copy, O_WRONLY | O_CREAT | O_EXCL, 0700);
    EXPECT(from >= 0 && to >= 0, "%s: %s", copy, strerror(errno));
    while ((n = read(from, buffer, sizeof buffer)) > 0)
        EXPECT(write(to, buffer, (size_t)n) == n, "write");
    close(from);
    close(to);
    loaded = load(copy);
    unlink(copy);
    return loaded;
}

int
main(void)
{
    has_its_own_fn *first = load(getenv("HOST_PLUGIN"));
    has_its_own_fn *second = load_copy(getenv("HOST_PLUGIN"));

    EXPECT(first && first(), "the first one's operators are another's");
    EXPECT(second && second(), "the second one's operators are another's");
    EXPECT(first && first(), "the first one's operators have changed");
    return host_wrong;
}
#endif
