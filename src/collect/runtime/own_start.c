/* SPDX-License-Identifier: MIT */
#include "collect/runtime/own_start.h"

#include "collect/runtime/own_threads.h"
#include "collect/signal/heap/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For libdw, which recurses over DIEs; touched as far as it is used. */
#define STACK (1024 * 1024)

/* One of the two functions. */
struct begin {
    void (*f)(void *arg);
    void *(*start)(void *arg);
    void *arg;
};

static void *
run(void *arg)
{
    struct begin begin = *(struct begin *)arg;
    void *result = NULL;

    cpprof__hook_self.exempt++;
    cpprof__own_thread_begin();
    free(arg);
    if (begin.f) {
        prctl(PR_SET_NAME, "cpprof");
        begin.f(begin.arg);
    } else {
        result = begin.start(begin.arg);
    }
    cpprof__own_thread_end();
    return result;
}

static int
create(pthread_t *thread, const pthread_attr_t *attr, struct begin begin)
{
    struct begin *copy = malloc(sizeof *copy);
    int failed;

    if (!copy)
        return EAGAIN;
    *copy = begin;
    failed = cpprof__own_pthread_create(thread, attr, run, copy);
    if (failed)
        free(copy);
    return failed;
}

int
cpprof__own_thread_start(void (*f)(void *arg), void *arg)
{
    sigset_t all, saved;
    pthread_attr_t attr;
    pthread_t thread;
    int failed;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    if (!cpprof__is_own_thread((int32_t)syscall(SYS_gettid)))
        cpprof__own_threads_mask(&saved);
    failed = create(&thread, &attr, (struct begin){.f = f, .arg = arg});
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

int
cpprof__own_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start)(void *arg), void *arg)
{
    return create(thread, attr, (struct begin){.start = start, .arg = arg});
}
