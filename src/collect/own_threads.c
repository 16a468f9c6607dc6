/* SPDX-License-Identifier: MIT */
#include "collect/own_threads.h"

#include "arch/atomic.h"
#include "base/buffer.h"
#include "collect/proc.h"
#include "collect/signal/heap.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The drainer, the keeper, the ticker of the wall profile. */
#define OWN_MAX 16

/* A thread that said that it ends is still there for a moment. */
#define LINGER_NS 1000000000u

/* How often a thread looks whether it is alone. */
#define LOOK_NS 1000000000u

struct own {
    int32_t tid;       /* 0: free */
    uint64_t ended_ns; /* 0: it runs */
};
static struct own owns[OWN_MAX];

/* The first word of a sigset_t: all signals that there are. */
static uint64_t program_mask;
static __thread uint64_t looked_ns;

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool
is_over(const struct own *own)
{
    uint64_t ended = load_acquire(&own->ended_ns);

    return ended && now_ns() - ended > LINGER_NS;
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

void
cpprof__own_thread_begin(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    unsigned i;

    for (i = 0; i < OWN_MAX; i++) {
        int32_t found = load_acquire(&owns[i].tid);

        if (found && !is_over(&owns[i]))
            continue;
        if (!cas_acq_rel(&owns[i].tid, &found, tid))
            continue;
        store_release(&owns[i].ended_ns, (uint64_t)0);
        return;
    }
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

    for (i = 0; i < OWN_MAX; i++)
        if (load_acquire(&owns[i].tid) == tid)
            store_release(&owns[i].ended_ns, now_ns());
    if (main_has_ended()) {
        cpprof__heap_self.exempt = 0;
        set_program_mask();
    }
}

bool
cpprof__is_own_thread(int32_t tid)
{
    unsigned i;

    for (i = 0; i < OWN_MAX; i++)
        if (load_acquire(&owns[i].tid) == tid && !is_over(&owns[i]))
            return true;
    return false;
}

uint32_t
cpprof__own_threads(void)
{
    uint32_t n = 0;
    unsigned i;

    for (i = 0; i < OWN_MAX; i++)
        n += load_acquire(&owns[i].tid) && !load_acquire(&owns[i].ended_ns);
    return n;
}

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

bool
cpprof__own_threads_are_alone(void)
{
    uint64_t now = now_ns();

    if (now - looked_ns < LOOK_NS)
        return false;
    looked_ns = now;
    return main_has_ended() && others_are_ours();
}

void
cpprof__own_threads_fork_child(void)
{
    memset(owns, 0, sizeof owns);
}
