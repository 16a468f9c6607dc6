/* SPDX-License-Identifier: MIT */
/* guest: 2. Nor is what was unloaded read by anybody, where dlclose() is not
 * called by its name: plug-ins come and go in which threads have just slept.
 * plugin */
#include "host.h"
#include <dlfcn.h>
#include <sys/mman.h>

#ifdef PLUGIN
/* 64 functions that call each other: whoever reads such a stack for the first
 * time is not soon done. */
#define CALLS(f, g)                                                            \
    __attribute__((noinline)) static void f(void)                              \
    {                                                                          \
        g();                                                                   \
        __asm__("");                                                           \
    }
#define CALL_4(f, g)                                                           \
    CALLS(f##3, g)                                                             \
    CALLS(f##2, f##3) CALLS(f##1, f##2) CALLS(f##0, f##1)
#define CALL_16(f, g)                                                          \
    CALL_4(f##3, g)                                                            \
    CALL_4(f##2, f##30) CALL_4(f##1, f##20) CALL_4(f##0, f##10)

static void
nap(void)
{
    usleep(20);
}

CALL_16(d, nap)
CALL_16(c, d00)
CALL_16(b, c00)
CALL_16(a, b00)

__attribute__((visibility("default"))) void
plugin_work(void)
{
    a00();
}
#else
static int (*unload)(void *plugin);

static void *
come_and_go(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1500; i++) {
        /* A file of its own: it is mapped anew, and elsewhere. */
        void *plugin = dlopen(getenv("HOST_PLUGIN"), RTLD_NOW);
        void (*work)(void) = (void (*)(void))dlsym(plugin, "plugin_work");

        EXPECT(work, "%s", dlerror());
        work();
        EXPECT(unload(plugin) == 0, "dlclose");
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return NULL;
}

int
main(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    pthread_t thread;

    unload = (int (*)(void *))dlsym(libc, "dlclose");
    EXPECT(unload, "%s", dlerror());
    pthread_create(&thread, NULL, come_and_go, NULL);
    pthread_join(thread, NULL);
    return host_wrong;
}
#endif
