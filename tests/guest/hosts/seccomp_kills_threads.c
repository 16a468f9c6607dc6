/* SPDX-License-Identifier: MIT */
/* guest: 3. A filter kills each thread that makes a call outside a list, as
 * chronyd's does. It has none of what a new thread needs. The program ends at
 * once and as it means to. */
#include "filter.h"

/* More than the program needs: files and threads of others, too. */
static void
confine(void)
{
    struct sock_filter lines[] = {
        FILTER_BEGIN,           ALLOW_WORK,
        ALLOW(ioctl),           ALLOW(openat),
        ALLOW(unlink),          ALLOW(clone3),
        ALLOW(set_robust_list), ALLOW(rseq),
        ALLOW(newfstatat),      FILTER_END(SECCOMP_RET_KILL_THREAD),
    };

    FILTER_SET(lines, 0);
}

int
main(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int i;

    alarm(20); /* and not after half a minute */
    confine();
    for (i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        free(malloc(200000));
        pthread_mutex_unlock(&lock);
        busy_ms(5);
    }
    return host_wrong;
}
