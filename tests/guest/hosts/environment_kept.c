/* SPDX-License-Identifier: MIT */
/* guest: 1. No environment is changed for children: what it has is what it was
 * given. */
#include "host.h"

extern char **environ;

int
main(void)
{
    const char *names[] = {"PYTHONPATH",    "LUA_INIT",        "LUA_INIT_5_4",
                           "PYTHONSTARTUP", "LD_LIBRARY_PATH", "HOME",
                           "PATH"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);

        printf("%s=%s\n", names[i], value ? value : "(none)");
    }
    fflush(stdout);
    return system("echo $PYTHONPATH $LUA_INIT $LUA_INIT_5_4") != 0;
}
