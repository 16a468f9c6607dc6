/* SPDX-License-Identifier: MIT */
/*
 * A tick asks the main thread, by a pending call: it comes at once when that
 * runs Python code, wherever it is. When it does not, because it sleeps or
 * another thread has the GIL, a thread of ours asks for the GIL; not at once,
 * or it would have it each time the main thread gives it away for a system
 * call, and there would be samples of little else.
 */
#include "python.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

/* Tunable: how long the main thread has to answer. If it is longer, samples of
 * other threads are coarser while the main one sleeps. If it is shorter, there
 * are more of the samples described above. */
#define PATIENCE_NS 1000000

static uint32_t is_asked;  /* a tick has no answer yet */
static uint32_t is_queued; /* the pending call is to come */
static bool is_sampling;

static struct {
    bool runs;
    uint32_t finish;
    pthread_t thread;
    PyThreadState *state;
    sem_t wake;
} helper;

/* The garbage collector may run in here, and with it code that releases the GIL
 * to another thread that comes here. */
void
ticks_sample(void)
{
    struct thread *t;

    __atomic_store_n(&is_asked, 0, __ATOMIC_RELEASE);
    if (is_sampling)
        return;
    threads_update();
    is_sampling = true;
    for (t = threads; t; t = t->next)
        if (t->state != helper.state && thread_wakes(t))
            cpprof_vm_thread_safepoint(t->vm);
    is_sampling = false;
}

/* In mode span it is asked for hooks. */
void
ticks_answer(void)
{
    if (!__atomic_load_n(&is_asked, __ATOMIC_ACQUIRE))
        return;
    if (!__atomic_load_n(&cpprof_vm_spans, __ATOMIC_RELAXED)) {
        ticks_sample();
        return;
    }
    __atomic_store_n(&is_asked, 0, __ATOMIC_RELEASE);
    spans_hook_all();
}

static int
on_pending(void *unused)
{
    __atomic_store_n(&is_queued, 0, __ATOMIC_RELEASE);
    ticks_answer();
    return 0;
}

void
ticks_interrupt(void *thread)
{
    if (__atomic_exchange_n(&is_asked, 1, __ATOMIC_ACQ_REL))
        return;
    if (!__atomic_exchange_n(&is_queued, 1, __ATOMIC_ACQ_REL) &&
        Py_AddPendingCall(on_pending, NULL))
        __atomic_store_n(&is_queued, 0, __ATOMIC_RELEASE);
    if (__atomic_load_n(&helper.runs, __ATOMIC_ACQUIRE))
        sem_post(&helper.wake);
}

/* ---- the helper -------------------------------------------------------- */

static void
sleep_ns(long ns)
{
    struct timespec left = {0, ns};

    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

static bool
wait_for_tick(void)
{
    while (sem_wait(&helper.wake) && errno == EINTR)
        continue;
    if (__atomic_load_n(&helper.finish, __ATOMIC_ACQUIRE))
        return false;
    sleep_ns(PATIENCE_NS);
    return true;
}

static void *
help(void *unused)
{
    PyGILState_STATE gil;

    cpprof_vm_own_thread_begin();
    gil = PyGILState_Ensure();
    helper.state = PyThreadState_Get();
    for (;;) {
        bool goes_on;

        Py_BEGIN_ALLOW_THREADS;
        while ((goes_on = wait_for_tick()) &&
               !__atomic_load_n(&is_asked, __ATOMIC_ACQUIRE))
            continue;
        Py_END_ALLOW_THREADS;
        if (!goes_on)
            break;
        ticks_answer();
    }
    helper.state = NULL;
    PyGILState_Release(gil);
    cpprof_vm_own_thread_end();
    return NULL;
}

/* Signals are left to the program's threads. */
bool
ticks_start(void)
{
    sigset_t all, saved;

    if (helper.runs)
        return true;
    helper.finish = 0;
    is_asked = 0;
    sem_init(&helper.wake, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    errno = pthread_create(&helper.thread, NULL, help, NULL);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (errno) {
        sem_destroy(&helper.wake);
        return false;
    }
    __atomic_store_n(&helper.runs, true, __ATOMIC_RELEASE);
    return true;
}

/* After the profile has ended: no tick comes any more. */
void
ticks_stop(void)
{
    if (!helper.runs)
        return;
    __atomic_store_n(&helper.runs, false, __ATOMIC_RELEASE);
    __atomic_store_n(&helper.finish, 1, __ATOMIC_RELEASE);
    sem_post(&helper.wake);
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(helper.thread, NULL);
    Py_END_ALLOW_THREADS;
    sem_destroy(&helper.wake);
}

/* The child has only the thread that forked, and no profile. */
void
ticks_after_fork(void)
{
    helper.runs = false;
    helper.state = NULL;
    is_asked = is_queued = 0;
    is_sampling = false;
}
