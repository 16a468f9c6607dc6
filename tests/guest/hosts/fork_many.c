/* SPDX-License-Identifier: MIT */
/* guest: 2. A forked child costs nothing until it lives: a hundred that end at
 * once leave no files. */
#include "host.h"
#include <dirent.h>

static int
files_here(void)
{
    DIR *here = opendir(".");
    int n = 0;

    while (readdir(here))
        n++;
    closedir(here);
    return n;
}

int
main(void)
{
    int before = files_here(), after;

    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            if (i % 2)
                exit(i);
            _exit(i);
        }
        EXPECT(status_of(pid) == i, "child %d", i);
    }
    after = files_here();
    EXPECT(after <= before + 2, "%d files more", after - before);
    return host_wrong;
}
