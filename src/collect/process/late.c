/* SPDX-License-Identifier: MIT */
/*
 * Starts the sampling of a process when it has lived for a moment (late.h).
 *
 * `state` says what becomes of it, and all changes are by compare-and-swap:
 * from WAITING the thread goes to STARTING and then to NOTHING; the end of the
 * process goes to NOTHING. The word is also the futex that the thread sleeps
 * on. A child of vfork shares it with its parent; `pid` tells whose it is.
 */
#include "collect/process/late.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A pause of our threads is seen so soon. */
#define NAP_NS 10000000u

/* Whoever waits for a start waits no longer, and looks so often. */
#define PATIENCE_NS CPPROF__NS_PER_S
#define LOOK_NS     100000

enum { NOTHING, WAITING, STARTING };
static uint32_t state CPPROF__AT_START;
static int32_t pid CPPROF__AT_START;
static struct cpprof__birth birth CPPROF__AT_START;
static uint64_t moment_ns CPPROF__AT_START;
static void (*start)(const struct cpprof__birth *birth) CPPROF__AT_START;
static unsigned flags CPPROF__AT_START; /* of the thread that starts */
static bool is_in_haste CPPROF__AT_START;

static bool
change(uint32_t from, uint32_t to)
{
    return cas_acq_rel(&state, &from, to);
}

CPPROF__FIRST_STEP static void
sleep_for(uint64_t ns)
{
    const struct timespec timeout =
        cpprof__timespec_of(ns < NAP_NS ? ns : NAP_NS);
    uint32_t now = load_acquire(&state);

    if (now != NOTHING)
        syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, now, &timeout, NULL, 0);
}

static bool
start_now(void *arg)
{
    (void)arg;
    start(&birth);
    store_release(&state, (uint32_t)NOTHING);
    return false;
}

/* What it reads of /proc is not to shift the program's descriptors. */
static void
start_apart(void)
{
    if (!flags || cpprof__own_thread_detached(start_now, NULL, flags))
        start_now(NULL);
}

CPPROF__FIRST_STEP static bool
wait_and_start(void *arg)
{
    uint64_t due = birth.mono_ns + moment_ns;

    (void)arg;
    while (load_acquire(&state) != NOTHING) {
        uint64_t now = cpprof__clock_ns(CLOCK_MONOTONIC);

        if (cpprof__own_thread_must_leave())
            return true;
        if (load_acquire(&is_in_haste))
            due = now;
        if (now >= due && change(WAITING, STARTING)) {
            start_apart();
            break;
        }
        sleep_for(now < due ? due - now : NAP_NS);
    }
    return false;
}

CPPROF__FIRST_STEP void
cpprof__late_begin(uint64_t ns, unsigned how_flags,
                   void (*how)(const struct cpprof__birth *birth))
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    pid = (int32_t)getpid();
    birth.tid = (int32_t)syscall(SYS_gettid);
    /* libc's way to read a clock has pages that a process which ends soon may
     * not need otherwise. */
    birth.thread_cpu_ns = cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    birth.process_cpu_ns = cpprof__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    birth.mono_ns = cpprof__clock_ns(CLOCK_MONOTONIC);
    birth.real_ns = cpprof__clock_ns(CLOCK_REALTIME);
    moment_ns = ns;
    start = how;
    flags = how_flags;
    store_release(&state, (uint32_t)WAITING);
    if (cpprof__own_thread_detached(wait_and_start, NULL, 0))
        store_release(&state, (uint32_t)NOTHING);
}

/* Where it is starting, that is waited for. */
CPPROF__FIRST_STEP static void
stop_waiting(void)
{
    uint64_t until = 0;

    if (load_acquire(&state) == NOTHING || pid != (int32_t)syscall(SYS_getpid))
        return;
    if (change(WAITING, NOTHING))
        return;
    until = cpprof__now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
    while (load_acquire(&state) == STARTING &&
           cpprof__now_ns(CLOCK_MONOTONIC) < until)
        cpprof__sleep_ns(LOOK_NS);
}

void
cpprof__late_hurry(void)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

    if (load_acquire(&state) == NOTHING || pid != (int32_t)syscall(SYS_getpid))
        return;
    store_release(&is_in_haste, true);
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    while (load_acquire(&state) != NOTHING &&
           cpprof__now_ns(CLOCK_MONOTONIC) < until)
        cpprof__sleep_ns(LOOK_NS);
}

CPPROF__FIRST_STEP void
cpprof__late_end(void)
{
    if (!cpprof__own_thread_is_this())
        stop_waiting();
}

CPPROF__FIRST_STEP void
cpprof__late_in_child(void)
{
    state = NOTHING;
    is_in_haste = false;
}
