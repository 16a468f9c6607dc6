/* SPDX-License-Identifier: MIT */
/* guest: What a program prints arrives once, whole and in order, across
 * forks. */
#include "host.h"

int
main(void)
{
    for (int i = 0; i < 300; i++) {
        printf("line %d\n", i);
        if (i % 50 == 0) {
            fflush(stdout);
            if (fork() == 0) {
                printf("child %d\n", i);
                exit(0);
            }
            wait(NULL);
        }
        busy_ms(0);
    }
    return host_wrong;
}
