/* SPDX-License-Identifier: MIT */
/* guest: 1. dlopen in one thread while others fork and allocate. plugin */
#include "host.h"
#include <dlfcn.h>

#ifdef PLUGIN
static int __attribute__((used)) nothing;
#else
static volatile int done;

static void *
loads(void *arg)
{
    while (!done) {
        void *plugin = dlopen(getenv("HOST_PLUGIN"), RTLD_NOW);

        EXPECT(plugin, "%s", dlerror());
        dlclose(plugin);
    }
    return arg;
}

int
main(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, loads, NULL);
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(2);
        EXPECT(status_of(pid) == 2, "child %d", i);
        free(malloc(200000));
    }
    done = 1;
    pthread_join(thread, NULL);
    return host_wrong;
}
#endif
