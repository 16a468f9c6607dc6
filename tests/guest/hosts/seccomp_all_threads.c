/* SPDX-License-Identifier: MIT */
/* guest: 3. A filter for all threads at once (SECCOMP_FILTER_FLAG_TSYNC),
 * while threads of the program run: it is set for each, and they go on. */
#include "filter.h"

int
main(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,
        FILTER_CASE(SYS_getppid, SECCOMP_RET_ERRNO | EUCLEAN),
        ALLOW_OTHERS,
    };
    pthread_t threads[4];
    int i;

    for (i = 0; i < 4; i++)
        threads[i] = start_busy(200);
    busy_ms(40);
    FILTER_SET(lines, SECCOMP_FILTER_FLAG_TSYNC);
    EXPECT(syscall(SYS_getppid) == -1 && errno == EUCLEAN, "no filter");
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    busy_ms(40);
    return host_wrong;
}
