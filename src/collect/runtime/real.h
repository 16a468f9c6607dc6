/* SPDX-License-Identifier: MIT */
/* The functions that src/interpose takes over, as they are underneath. */
#ifndef COLLECT_REAL_H
#define COLLECT_REAL_H

#include <pthread.h>
#include <signal.h>

/* The next definition of a name after ours; aborts the process when there is
 * none, because the program called a function that cannot be carried out.
 * Safety: MT, not AS the first time. */
void *
cpprof__real_symbol(const char *name);

/* A pointer to the next definition of `name`, found once. */
#define CPPROF__REAL(type, name)                                               \
    ({                                                                         \
        static void *found;                                                    \
        void *f = __atomic_load_n(&found, __ATOMIC_RELAXED);                   \
                                                                               \
        if (!f) {                                                              \
            f = cpprof__real_symbol(#name);                                    \
            __atomic_store_n(&found, f, __ATOMIC_RELAXED);                     \
        }                                                                      \
        (type) f;                                                              \
    })

int
cpprof__real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg);
int
cpprof__real_sigaction(int signo, const struct sigaction *action,
                       struct sigaction *old);

#endif
