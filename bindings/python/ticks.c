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

/* Stands for the interpreter: it is asked while no thread of it has a frame,
 * and never answers. */
static struct cpprof_vm_thread *stand_in;

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

    store_release(&is_asked, 0);
    if (is_sampling)
        return;
    threads_update();
    is_sampling = true;
    for (t = threads; t; t = t->next)
        if (t->state != helper.state && thread_wakes(t))
            cpprof_vm_thread_safepoint(t->vm);
    is_sampling = false;
}

/* In mode span a tick asks for hooks. */
void
ticks_answer(void)
{
    if (!load_acquire(&is_asked))
        return;
    if (!load_relaxed(&cpprof_vm_running->spans)) {
        ticks_sample();
        return;
    }
    store_release(&is_asked, 0);
    spans_hook_all();
}

static int
on_pending(void *unused)
{
    store_release(&is_queued, 0);
    ticks_answer();
    return 0;
}

void
ticks_interrupt(void *thread)
{
    if (swap_acq_rel(&is_asked, 1))
        return;
    if (!swap_acq_rel(&is_queued, 1) && Py_AddPendingCall(on_pending, NULL))
        store_release(&is_queued, 0);
    if (load_acquire(&helper.runs))
        sem_post(&helper.wake);
}

/* ---- the helper -------------------------------------------------------- */

/* A tick, and that the main thread has had its time. False: the helper is to
 * end. */
static bool
wait_for_tick(void)
{
    struct timespec left = {0, PATIENCE_NS};

    while (sem_wait(&helper.wake) && errno == EINTR)
        continue;
    if (load_acquire(&helper.finish))
        return false;
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
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
        while ((goes_on = wait_for_tick()) && !load_acquire(&is_asked))
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
    if (!stand_in)
        cpprof_vm_thread_new(python_vm, NULL, &stand_in, NULL);
    sem_init(&helper.wake, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    errno = pthread_create(&helper.thread, NULL, help, NULL);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (errno) {
        sem_destroy(&helper.wake);
        return false;
    }
    store_release(&helper.runs, true);
    return true;
}

/* After the profile has ended: no tick comes any more. */
void
ticks_stop(void)
{
    if (!helper.runs)
        return;
    store_release(&helper.runs, false);
    store_release(&helper.finish, 1);
    sem_post(&helper.wake);
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(helper.thread, NULL);
    Py_END_ALLOW_THREADS;
    sem_destroy(&helper.wake);
    cpprof_vm_thread_free(stand_in);
    stand_in = NULL;
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
