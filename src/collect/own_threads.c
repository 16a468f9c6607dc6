/* SPDX-License-Identifier: MIT */
#include "collect/own_threads.h"

#include "arch/atomic.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The drainer, the keeper, the ticker of the wall profile. */
#define OWN_MAX 16

/* A thread that said that it ends is still there for a moment. */
#define LINGER_NS 1000000000u

struct own {
    int32_t tid;       /* 0: free */
    uint64_t ended_ns; /* 0: it runs */
};
static struct own owns[OWN_MAX];

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

void
cpprof__own_thread_end(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    unsigned i;

    for (i = 0; i < OWN_MAX; i++)
        if (load_acquire(&owns[i].tid) == tid)
            store_release(&owns[i].ended_ns, now_ns());
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

void
cpprof__own_threads_fork_child(void)
{
    memset(owns, 0, sizeof owns);
}
