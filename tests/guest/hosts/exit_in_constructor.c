/* SPDX-License-Identifier: MIT */
/* guest: 2. exit() in a constructor under dlopen ends the process. plugin */
#include "host.h"
#include <dlfcn.h>

#ifdef PLUGIN
static void __attribute__((constructor)) loaded(void)
{
    busy_ms(30);
    exit(21);
}
#else
int
main(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        busy_ms(30);
        dlopen(getenv("HOST_PLUGIN"), RTLD_NOW);
        _exit(1);
    }
    EXPECT(status_of(pid) == 21, "it ended otherwise");
    return host_wrong;
}
#endif
