/* SPDX-License-Identifier: MIT */
#include "collect/runtime/real.h"

#include <dlfcn.h>
#include <stdlib.h>

void *
cpprof__real_symbol(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);

    if (!f)
        abort();
    return f;
}

int
cpprof__real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg)
{
    typedef int create_fn(pthread_t *, const pthread_attr_t *,
                          void *(*)(void *), void *);

    return CPPROF__REAL(create_fn *, pthread_create)(thread, attr, start, arg);
}

int
cpprof__real_sigaction(int signo, const struct sigaction *action,
                       struct sigaction *old)
{
    typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);

    return CPPROF__REAL(sigaction_fn *, sigaction)(signo, action, old);
}
