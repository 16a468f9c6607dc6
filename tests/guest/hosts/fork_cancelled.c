/* SPDX-License-Identifier: MIT */
/* guest: 2. No cancellation point of ours: a thread that is to be cancelled
 * forks, and both processes come back from fork and end by _exit. */
#include "host.h"

#define N_FORKS 50

static int n_returned;

static void *
forks(void *arg)
{
    int i, status;

    pthread_cancel(pthread_self());
    for (i = 0; i < N_FORKS; i++) {
        pid_t child = fork();

        if (!child)
            _exit(7);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        waitpid(child, &status, 0);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        n_returned += WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    return arg;
}

int
main(void)
{
    pthread_t thread;
    void *result = NULL;

    pthread_create(&thread, NULL, forks, &thread);
    pthread_join(thread, &result);
    EXPECT(n_returned == N_FORKS, "%d of %d children", n_returned, N_FORKS);
    EXPECT(result == &thread, "fork or _exit cancelled the thread");
    return host_wrong;
}
