/* SPDX-License-Identifier: MIT */
/* guest: 3. set*id reaches all threads where few signals can be queued: libc
 * cannot signal a thread when none can.
 * needs: root */
#include "host.h"
#include <sys/resource.h>

#define N 40

static volatile int done;
static int others;

static void *
looks(void *arg)
{
    uid_t real, effective, saved;

    while (!done) {
        busy_ms(1);
        sleep_ms(5);
    }
    getresuid(&real, &effective, &saved);
    if (real != 65534 || effective != 65534)
        __atomic_add_fetch(&others, 1, __ATOMIC_RELAXED);
    return arg;
}

int
main(void)
{
    struct rlimit few = {20, 20};
    uid_t uid = 100000 + (uid_t)getpid(); /* no other queues signals */
    pthread_t thread[N];

    EXPECT(setresuid(uid, uid, 65534) == 0, "%s", strerror(errno));
    setrlimit(RLIMIT_SIGPENDING, &few);
    for (int i = 0; i < N; i++)
        pthread_create(&thread[i], NULL, looks, NULL);
    sleep_ms(30);
    EXPECT(setresuid(65534, 65534, 65534) == 0, "%s", strerror(errno));
    done = 1;
    for (int i = 0; i < N; i++)
        pthread_join(thread[i], NULL);
    EXPECT(others == 0, "%d threads have another user", others);
    return host_wrong;
}
