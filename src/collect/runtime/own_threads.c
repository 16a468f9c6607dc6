/* SPDX-License-Identifier: MIT */
/*
 * The list of the profiler's own threads, and starting them.
 *
 * Each own thread enters its tid when it begins and marks it when it ends. The
 * kernel lists a thread before it can do that; so whoever starts one counts it
 * in n_making first, and whoever reads the kernel's list waits until that
 * count is 0 or its patience is over.
 *
 * A slot is taken by compare-and-swap on tid. An ended entry stays for a
 * second, because the kernel still lists the thread, and is then free for
 * another.
 *
 * When the main thread has ended and only own threads are left, they end, too:
 * then libc ends the process as it would without us.
 */
#include "collect/runtime/own_threads.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/buffer.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/heap/heap.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The drainer, the keeper, the ticker of the wall profile, who writes, and the
 * threads of servers: more than these are taken for the program's. */
#define OWN_MAX 256

/* A thread that said that it ends is still there for a moment. */
#define LINGER_NS 1000000000u

/* Tunables. Who waits for threads that are made looks so often, and so long:
 * one that gets no processor for a second is shown rather than waited for. */
#define SETTLE_PAUSE_NS 50000
#define SETTLE_LOOKS    20000u

/* How often a thread looks whether it is alone. */
#define LOOK_NS 1000000000u

struct own {
    int32_t tid;       /* 0: free */
    uint64_t ended_ns; /* 0: it runs */
};
static struct own owns[OWN_MAX];
static uint32_t n_making;     /* that have not said yet that they began */
static uint64_t own_tasks_ns; /* CPU time of those */
static uint32_t n_used;       /* slots from the first that ever were taken */

/* The first word of a sigset_t: all signals that there are. */
static uint64_t program_mask;
static __thread uint64_t looked_ns;

uint64_t
cpprof__program_cpu_ns(void)
{
    return cpprof__now_ns(CLOCK_PROCESS_CPUTIME_ID) -
           load_relaxed(&own_tasks_ns);
}

static bool
is_over(const struct own *own)
{
    uint64_t ended = load_acquire(&own->ended_ns);

    return ended && cpprof__now_ns(CLOCK_MONOTONIC) - ended > LINGER_NS;
}

static void
set_program_mask(void)
{
    uint64_t mask = load_relaxed(&program_mask);
    sigset_t set;

    sigemptyset(&set);
    memcpy(&set, &mask, sizeof mask);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

void
cpprof__own_threads_mask(const sigset_t *program)
{
    uint64_t mask;

    memcpy(&mask, program, sizeof mask);
    store_relaxed(&program_mask, mask);
}

static void
note_used(uint32_t n)
{
    uint32_t used = load_relaxed(&n_used);

    while (used < n && !cas_acq_rel(&n_used, &used, n))
        continue;
}

static void
note_tid(int32_t tid)
{
    unsigned i;

    for (i = 0; i < OWN_MAX; i++) {
        int32_t found = load_acquire(&owns[i].tid);

        if (found && !is_over(&owns[i]))
            continue;
        if (!cas_acq_rel(&owns[i].tid, &found, tid))
            continue;
        store_release(&owns[i].ended_ns, (uint64_t)0);
        note_used(i + 1);
        return;
    }
}

/* One fewer is being made. */
static void
note_made(void)
{
    uint32_t n = load_relaxed(&n_making);

    while (n && !cas_acq_rel(&n_making, &n, n - 1))
        continue;
}

int
cpprof__own_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                           void *(*start)(void *), void *arg)
{
    int failed;

    add_relaxed(&n_making, 1u);
    failed = cpprof__real_pthread_create(thread, attr, start, arg);
    if (failed)
        note_made();
    return failed;
}

#ifdef __SANITIZE_ADDRESS__
extern void
__asan_unpoison_memory_region(const volatile void *start, size_t n);

/* A thread that is not made by way of the sanitizer's pthread_create() may have
 * the stack of one that was, with what it has said of that. */
static void
begin_clean(void)
{
    const char *here = __builtin_frame_address(0);
    pthread_attr_t attr;
    void *stack;
    size_t n;

    if (pthread_getattr_np(pthread_self(), &attr))
        return;
    if (!pthread_attr_getstack(&attr, &stack, &n) &&
        here > (const char *)stack && here < (const char *)stack + n)
        __asan_unpoison_memory_region(stack, (size_t)(here - (char *)stack));
    pthread_attr_destroy(&attr);
}
#else
static void
begin_clean(void)
{
}
#endif

void
cpprof__own_thread_begin(void)
{
    begin_clean();
    note_tid((int32_t)syscall(SYS_gettid));
    note_made();
}

void
cpprof__own_threads_wait_named(void)
{
    const struct timespec pause = {0, SETTLE_PAUSE_NS};
    unsigned i;

    for (i = 0; load_acquire(&n_making) && i < SETTLE_LOOKS; i++)
        syscall(SYS_nanosleep, &pause, NULL);
}

/* It stays in the list of threads, as a zombie, until the process ends. */
static bool
main_has_ended(void)
{
    struct cpprof__buffer stat = {0};
    const char *state = NULL;
    char path[64];
    bool has;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    if (cpprof__proc_read(path, &stat))
        state = strrchr((const char *)stat.data, ')');
    has = state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
    cpprof__buffer_free(&stat);
    return has;
}

void
cpprof__own_thread_end(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid)
            store_release(&owns[i].ended_ns, cpprof__now_ns(CLOCK_MONOTONIC));
    if (main_has_ended()) {
        cpprof__hook_self.exempt = 0;
        set_program_mask();
    }
}

bool
cpprof__is_own_thread(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid && !is_over(&owns[i]))
            return true;
    return false;
}

bool
cpprof__own_thread_runs(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid &&
            !load_acquire(&owns[i].ended_ns))
            return true;
    return false;
}

uint32_t
cpprof__own_threads(void)
{
    uint32_t n = 0;
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        n += load_acquire(&owns[i].tid) && !load_acquire(&owns[i].ended_ns);
    return n;
}

/* ---- one for a single piece of work ----------------------------------- */

/* For libdw, which recurses over DIEs; touched as far as it is used. */
#define STACK (1024 * 1024)

struct own_task {
    void (*f)(void *arg);
    void *arg;
};

static void *
run_own_task(void *arg)
{
    const struct own_task *own_task = arg;

    cpprof__hook_self.exempt++;
    cpprof__own_thread_begin();
    prctl(PR_SET_NAME, "cpprof");
    own_task->f(own_task->arg);
    add_relaxed(&own_tasks_ns, cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID));
    cpprof__own_thread_end();
    return NULL;
}

static int
start_own_task(struct own_task *own_task, pthread_t *thread)
{
    sigset_t all, saved;
    pthread_attr_t attr;
    int failed;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    cpprof__own_threads_mask(&saved);
    failed = cpprof__own_pthread_create(thread, &attr, run_own_task, own_task);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

void
cpprof__own_thread_run(void (*f)(void *arg), void *arg)
{
    struct own_task own_task = {f, arg};
    pthread_t thread;
    CPPROF__UNCANCELLED;

    if (cpprof__is_own_thread((int32_t)syscall(SYS_gettid)) ||
        start_own_task(&own_task, &thread))
        f(arg);
    else
        pthread_join(thread, NULL);
}

/* ---- the last thread -------------------------------------------------- */

static bool
others_are_ours(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    bool all = dir != NULL;

    while (all && (entry = readdir(dir))) {
        int32_t tid = (int32_t)atoi(entry->d_name);

        all = !tid || tid == (int32_t)getpid() || cpprof__is_own_thread(tid);
    }
    if (dir)
        closedir(dir);
    return all;
}

#define JOIN_NS 50000000

void
cpprof__own_thread_join(pthread_t thread, const uint32_t *was_alone)
{
    struct timespec until;
    int failed;

    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += JOIN_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        failed = pthread_timedjoin_np(thread, NULL, &until);
    } while (failed == ETIMEDOUT && !load_acquire(was_alone));
}

bool
cpprof__own_threads_are_alone(void)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);

    if (now - looked_ns < LOOK_NS)
        return false;
    looked_ns = now;
    return main_has_ended() && others_are_ours();
}

void
cpprof__own_threads_fork_child(void)
{
    memset(owns, 0, sizeof owns);
    n_making = 0;
    own_tasks_ns = 0; /* its clock begins anew */
}
