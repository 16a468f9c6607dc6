/* SPDX-License-Identifier: MIT */
/* guest: 1. A constructor run by dlopen starts a thread that calls signal(),
 * sigaction() and fork(), and joins it. plugin */
#include "host.h"
#include <dlfcn.h>

#ifdef PLUGIN
static void *
works(void *arg)
{
    struct sigaction action;
    pid_t pid;

    signal(SIGUSR1, SIG_IGN);
    sigaction(SIGUSR2, NULL, &action);
    free(malloc(100000));
    busy_ms(20);
    pid = fork();
    if (pid == 0)
        _exit(6);
    EXPECT(status_of(pid) == 6, "the child ended otherwise");
    return arg;
}

static void __attribute__((constructor)) loaded(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, works, NULL);
    pthread_join(thread, NULL);
    puts("loaded");
}
#else
int
main(void)
{
    void *plugin = dlopen(getenv("HOST_PLUGIN"), RTLD_NOW);

    EXPECT(plugin, "%s", dlerror());
    EXPECT(!plugin || dlclose(plugin) == 0, "dlclose");
    return host_wrong;
}
#endif
