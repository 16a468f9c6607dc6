/* SPDX-License-Identifier: MIT */
/* guest: 4. Polls of a millisecond between pieces of work, by several threads:
 * none is cut short by a tick on its way to sleep. How long the work takes
 * changes nothing about how often a tick comes just there. */
#include "host.h"
#include <poll.h>

enum { THREADS = 4, POLLS = 400 };

static void *
poll_often(void *n_cut)
{
    for (unsigned i = 0; i < POLLS; i++) {
        for (volatile unsigned k = 0; k < (1000 + i) * host_busy; k++)
            continue;
        *(int *)n_cut += poll(NULL, 0, 1) < 0;
    }
    return NULL;
}

int
main(void)
{
    pthread_t threads[THREADS];
    int n_cut[THREADS] = {0}, n = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, poll_often, &n_cut[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        n += n_cut[i];
    }
    EXPECT(n == 0, "%s", strerror(EINTR));
    return host_wrong;
}
