/* SPDX-License-Identifier: MIT */
/* guest: rwlocks, barriers, spin locks and keys answer as they do without
 * us. */
#include "host.h"

static int n_destroyed;

static void
destroy(void *value)
{
    (void)value;
    __atomic_add_fetch(&n_destroyed, 1, __ATOMIC_RELAXED);
}

static pthread_barrier_t barrier;
static pthread_key_t key;

static void *
meets(void *arg)
{
    int result;

    pthread_setspecific(key, &key);
    result = pthread_barrier_wait(&barrier);
    EXPECT(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD, "barrier");
    return arg;
}

int
main(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    pthread_t thread[3];
    pthread_spinlock_t spin;

    EXPECT(pthread_rwlock_rdlock(&lock) == 0, "rdlock");
    EXPECT(pthread_rwlock_tryrdlock(&lock) == 0, "tryrdlock");
    EXPECT(pthread_rwlock_trywrlock(&lock) == EBUSY, "trywrlock");
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_unlock(&lock);
    EXPECT(pthread_rwlock_wrlock(&lock) == 0, "wrlock");
    EXPECT(pthread_rwlock_wrlock(&lock) == EDEADLK, "wrlock again");
    pthread_rwlock_unlock(&lock);
    pthread_spin_init(&spin, 0);
    pthread_spin_lock(&spin);
    EXPECT(pthread_spin_trylock(&spin) == EBUSY, "spin");
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, meets, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    EXPECT(n_destroyed == 3, "%d keys destroyed", n_destroyed);
    return host_wrong;
}
