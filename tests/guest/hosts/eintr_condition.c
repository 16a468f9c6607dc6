/* SPDX-License-Identifier: MIT */
/* guest: 4. Waits of condition variables end when they should, and by what
 * they should. */
#include "host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

int
main(void)
{
    pthread_t busy = start_busy(150);

    pthread_mutex_lock(&lock);
    for (int i = 0; i < 60; i++) {
        struct timespec t;
        uint64_t before = host_ns(CLOCK_REALTIME);
        int result;

        t.tv_sec = (time_t)((before + 2000000) / 1000000000);
        t.tv_nsec = (long)((before + 2000000) % 1000000000);
        do
            result = pthread_cond_timedwait(&cond, &lock, &t);
        while (result == 0);
        EXPECT(result == ETIMEDOUT, "timedwait: %s", strerror(result));
        EXPECT(host_ns(CLOCK_REALTIME) >= before + 2000000, "too early");
    }
    pthread_mutex_unlock(&lock);
    pthread_join(busy, NULL);
    return host_wrong;
}
