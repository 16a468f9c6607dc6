/* SPDX-License-Identifier: MIT */
/*
 * Thread creation: each new thread announces itself to the session before it
 * runs the program's start routine. The wrapper ends in a tail call, so that
 * no frame of ours stays on the thread's stack.
 */
#include "collect/threads.h"
#include "collect/real.h"
#include <cpprof/status.h>

#include <pthread.h>
#include <threads.h>

/* POSIX has no word for the default stack size but an attribute object. */
static size_t
stack_bytes_of(const pthread_attr_t *attr)
{
    pthread_attr_t defaults;
    size_t n = 0;

    if (attr) {
        pthread_attr_getstacksize(attr, &n);
    } else if (!pthread_attr_init(&defaults)) {
        pthread_attr_getstacksize(&defaults, &n);
        pthread_attr_destroy(&defaults);
    }
    return n;
}

static void *
run_pthread(void *place)
{
    struct cpprof__thread *t = place;
    void *(*start)(void *) = (void *(*)(void *))t->start;
    void *arg = t->start_arg;

    cpprof__thread_started(t);
    return start(arg);
}

CPPROF_API int
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
               void *(*start)(void *), void *restrict arg)
{
    struct cpprof__thread *t =
        cpprof__thread_announce((uintptr_t)start, arg, stack_bytes_of(attr));
    int failed;

    if (!t)
        return cpprof__real_pthread_create(thread, attr, start, arg);
    failed = cpprof__real_pthread_create(thread, attr, run_pthread, t);
    if (failed)
        cpprof__thread_cancel(t);
    return failed;
}

static int
run_thrd(void *place)
{
    struct cpprof__thread *t = place;
    thrd_start_t start = (thrd_start_t)t->start;
    void *arg = t->start_arg;

    cpprof__thread_started(t);
    return start(arg);
}

/* glibc's thrd_create reaches the creation of threads without a name that
 * could be taken over. */
CPPROF_API int
thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
    typedef int create_fn(thrd_t *, thrd_start_t, void *);
    create_fn *create = CPPROF__REAL(create_fn *, thrd_create);
    struct cpprof__thread *t =
        cpprof__thread_announce((uintptr_t)start, arg, stack_bytes_of(NULL));
    int failed;

    if (!t)
        return create(thread, start, arg);
    failed = create(thread, run_thrd, t);
    if (failed != thrd_success)
        cpprof__thread_cancel(t);
    return failed;
}
