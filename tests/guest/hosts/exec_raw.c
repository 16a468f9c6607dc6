/* SPDX-License-Identifier: MIT */
/* guest: 2. exec: by a system call that nobody sees, which takes the kernel a
 * while, as the arguments are long: no signal of ours waits for the new image.
 */
#include "host.h"

#include <sys/syscall.h>

#define N_WORDS 15
#define N_BYTES 100000

int
main(int argc, char **argv)
{
    static char *words[N_WORDS + 3], word[N_BYTES + 1];
    extern char **environ;

    if (argc > 1)
        return host_wrong;
    memset(word, 'x', N_BYTES);
    words[0] = argv[0];
    words[1] = "again";
    for (int i = 0; i < N_WORDS; i++)
        words[2 + i] = word;
    busy_ms(30);
    syscall(SYS_execve, "/proc/self/exe", words, environ);
    return 99;
}
