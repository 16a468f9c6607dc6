/* SPDX-License-Identifier: MIT */
/* A library that has pthread_mutex_lock in front of libc's, as checkers have
 * it, and jumps to that. */
#include <dlfcn.h>
#include <pthread.h>

#define PUBLIC __attribute__((visibility("default"), noinline))

typedef int
lock_fn(pthread_mutex_t *mutex);

static lock_fn *next;

PUBLIC int
pthread_mutex_lock(pthread_mutex_t *mutex);

int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!__atomic_load_n(&next, __ATOMIC_ACQUIRE))
        __atomic_store_n(&next,
                         (lock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_lock"),
                         __ATOMIC_RELEASE);
    return next(mutex);
}
