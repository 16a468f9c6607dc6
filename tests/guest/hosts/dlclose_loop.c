/* SPDX-License-Identifier: MIT */
/* guest: 2. Code that was unloaded is run by nobody: plug-ins come and go while
 * threads work in them. plugin */
#include "host.h"
#include <dlfcn.h>

#ifdef PLUGIN
__attribute__((visibility("default"))) void
plugin_work(void)
{
    free(malloc(20000));
    busy_ms(1);
}
#else
int
main(void)
{
    pthread_t busy = start_busy(100);

    for (int i = 0; i < 60; i++) {
        void *plugin = dlopen(getenv("HOST_PLUGIN"), RTLD_NOW);
        void (*work)(void) = (void (*)(void))dlsym(plugin, "plugin_work");

        EXPECT(work, "%s", dlerror());
        work();
        EXPECT(dlclose(plugin) == 0, "dlclose");
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
#endif
