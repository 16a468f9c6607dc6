/* SPDX-License-Identifier: MIT */
/* guest: 2. exec: same process, same arguments, no signal on the way; one that
 * fails says why and changes nothing. */
#include "host.h"

int
main(int argc, char **argv)
{
    char *words[] = {argv[0], "again", NULL};

    busy_ms(30);
    if (argc > 1) {
        sigset_t pending;

        sigpending(&pending);
        for (int i = 1; i < 65; i++)
            EXPECT(sigismember(&pending, i) != 1, "signal %d is pending", i);
        printf("%s\n", argv[1]);
        return host_wrong;
    }
    EXPECT(execl("/nowhere", "x", (char *)NULL) < 0 && errno == ENOENT,
           "execl: %s", strerror(errno));
    busy_ms(30);
    execv("/proc/self/exe", words);
    return 99;
}
