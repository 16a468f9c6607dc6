/* SPDX-License-Identifier: MIT */
/* guest: 2. posix_spawn, system and popen. */
#include "host.h"
#include <spawn.h>

extern char **environ;

int
main(void)
{
    char *words[] = {"sh", "-c", "exit 9", NULL}, line[64] = "";
    FILE *from;

    for (int i = 0; i < 10; i++) {
        pid_t pid;

        EXPECT(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ) == 0,
               "posix_spawn");
        EXPECT(status_of(pid) == 9, "the child ended otherwise");
    }
    EXPECT(WEXITSTATUS(system("exit 3")) == 3, "system");
    from = popen("echo hello", "r");
    EXPECT(from && fgets(line, sizeof line, from), "popen");
    EXPECT(strcmp(line, "hello\n") == 0, "read %s", line);
    EXPECT(pclose(from) == 0, "pclose");
    return host_wrong;
}
