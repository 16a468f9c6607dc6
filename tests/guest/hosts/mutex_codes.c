/* SPDX-License-Identifier: MIT */
/* guest: mutexes of all kinds answer as they do without us. */
#include "host.h"

static pthread_mutex_t
make(int type, int robust)
{
    pthread_mutexattr_t how;
    pthread_mutex_t lock;

    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, type);
    pthread_mutexattr_setrobust(&how, robust);
    pthread_mutex_init(&lock, &how);
    return lock;
}

static void *
dies_with(void *arg)
{
    pthread_mutex_lock(arg);
    return arg;
}

int
main(void)
{
    static pthread_mutex_t checks, again, robust, plain;
    struct timespec past = {1, 0};
    pthread_t thread;

    checks = make(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
    again = make(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
    robust = make(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
    plain = make(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
    EXPECT(pthread_mutex_unlock(&checks) == EPERM, "unlock");
    EXPECT(pthread_mutex_lock(&checks) == 0, "lock");
    EXPECT(pthread_mutex_lock(&checks) == EDEADLK, "lock again");
    EXPECT(pthread_mutex_lock(&again) == 0, "lock");
    EXPECT(pthread_mutex_lock(&again) == 0, "lock again");
    EXPECT(pthread_mutex_lock(&plain) == 0, "lock");
    EXPECT(pthread_mutex_trylock(&plain) == EBUSY, "trylock");
    EXPECT(pthread_mutex_timedlock(&plain, &past) == ETIMEDOUT, "timedlock");
    pthread_create(&thread, NULL, dies_with, &robust);
    pthread_join(thread, NULL);
    EXPECT(pthread_mutex_lock(&robust) == EOWNERDEAD, "a dead owner");
    EXPECT(pthread_mutex_consistent(&robust) == 0, "consistent");
    EXPECT(pthread_mutex_unlock(&robust) == 0, "unlock");
    return host_wrong;
}
