/* SPDX-License-Identifier: MIT */
/*
 * The end of the process: by exit(), whose destructors include ours, and by
 * _exit() and quick_exit(), which run none.
 *
 * What is left to be written is written on a thread of ours, and waited for
 * until a moment of the monotonic clock: the caller may hold locks of the
 * program or of the loader (exit() in a constructor under dlopen() does), and
 * that thread may want them. Names need a library to be loaded before; where
 * another thread cannot do that the caller does, since whoever has the loader's
 * lock can take it again. The caller may also be a handler that interrupted
 * malloc: so all is done by a thread that is there, if one is.
 *
 * _exit() may be called by a handler that interrupted malloc, and then the
 * thread that is made to write the profiles may wait for the interrupted one;
 * a task that uses no more than the kernel sees to it that the process ends.
 */
#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/cpu/session.h"
#include "collect/encode/names.h"
#include "collect/process/environment.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/keeper.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/uncancelled.h"
#include "interpose/heap.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long exit() and _exit() wait for what is written; and more than all that
 * may take its time in _exit(). */
#define EXIT_SECONDS        30
#define HASTE_SECONDS       10
#define INTERRUPTED_SECONDS 1

/* Tunable. A library that another thread has not loaded by then waits for a
 * lock of the caller's, or for a slow disk; then the caller waits for that
 * thread. */
#define LOAD_NS     CPPROF__NS_PER_S
#define SECONDS_MAX (2 * HASTE_SECONDS + 1)

/* Is there anything to write? All are asked. */
CPPROF__FIRST_STEP static bool
end_parts(bool in_haste)
{
    bool has = false;
    unsigned i;

    /* It would be killed here. What libc writes out after us, it may. */
    if (cpprof__in_strict_seccomp())
        return false;
    for (i = 0; i < CPPROF__N_PARTS; i++)
        if (cpprof__parts[i].end)
            cpprof__parts[i].end();
    for (i = 0; i < CPPROF__N_PARTS; i++)
        if (cpprof__parts[i].has_to_write)
            has |= cpprof__parts[i].has_to_write(in_haste);
    return has;
}

/* ---- writing ---------------------------------------------------------- */

static uint64_t until_ns;   /* of CLOCK_MONOTONIC */
static uint32_t is_written; /* futex */
static uint32_t is_loaded;  /* futex */
static bool keeper_loads;   /* and does not come back */

static void
tell(uint32_t *word)
{
    store_release(word, 1u);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static bool
wait_for(uint32_t *word, uint64_t moment_ns)
{
    uint64_t now;

    while (!load_acquire(word) &&
           (now = cpprof__clock_ns(CLOCK_MONOTONIC)) < moment_ns) {
        const struct timespec left = cpprof__timespec_of(moment_ns - now);

        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &left, NULL, 0);
    }
    return load_acquire(word);
}

static void
load_and_tell(void)
{
    cpprof__names_load();
    tell(&is_loaded);
}

/* It stays until the profiles are written: where the program's last thread is
 * the one that exits, libc takes this one for the last when it ends, and ends
 * the process. */
static bool
load_on_thread(void *arg)
{
    (void)arg;
    load_and_tell();
    wait_for(&is_written, cpprof__clock_ns(CLOCK_MONOTONIC) +
                              EXIT_SECONDS * CPPROF__NS_PER_S);
    return false;
}

/* The caller may have interrupted malloc. What another thread allocates libc
 * bears: with one thread it has no lock, and others have another arena. */
static bool
starts_thread(bool (*f)(void *))
{
    int failed;

    cpprof__lend_at_end(true);
    failed = cpprof__own_thread_detached(f, NULL, 0);
    cpprof__lend_at_end(false);
    return !failed;
}

static bool
load_apart(void)
{
    if (cpprof__own_thread_is_this())
        return false;
    keeper_loads = cpprof__keeper_run(load_and_tell);
    return keeper_loads || starts_thread(load_on_thread);
}

static void
load_names(void)
{
    bool is_there =
        load_apart() &&
        wait_for(&is_loaded, cpprof__clock_ns(CLOCK_MONOTONIC) + LOAD_NS);

    if (is_there)
        keeper_loads = false;
    else
        cpprof__names_load();
}

static void
write_all(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__N_PARTS; i++)
        if (cpprof__parts[i].write)
            cpprof__parts[i].write(until_ns);
    tell(&is_written);
}

static bool
write_on_thread(void *arg)
{
    (void)arg;
    write_all();
    return false;
}

/* On a thread that is there, since a handler may not be able to make another. A
 * thread of ours does it itself: it is the last one. So does exit() where there
 * can be no other, as after unshare(CLONE_NEWPID). */
static bool
starts_to_write(bool with_timeout)
{
    return (with_timeout && cpprof__session_end_by(write_all)) ||
           (!keeper_loads && cpprof__keeper_run(write_all)) ||
           cpprof__session_end_by(write_all) || starts_thread(write_on_thread);
}

static void
write_apart(bool with_timeout)
{
    if (cpprof__own_thread_is_this())
        write_all();
    else if (starts_to_write(with_timeout))
        wait_for(&is_written, until_ns);
    else if (!with_timeout)
        write_all();
}

static void
write_by(unsigned seconds, bool with_timeout)
{
    const struct cpprof_error late = {
        .text = "the profiles take too long: not written"};

    /* A handler ends the process: libc has locks that whoever writes wants. */
    if (cpprof__in_thread_creation())
        seconds = INTERRUPTED_SECONDS;
    is_written = 0;
    until_ns = cpprof__clock_ns(CLOCK_MONOTONIC) +
               (uint64_t)seconds * CPPROF__NS_PER_S;
    write_apart(with_timeout);
    if (!load_acquire(&is_written))
        cpprof__environment_complain(&late);
}

CPPROF__FIRST_STEP void
cpprof__at_exit(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (!end_parts(false))
        return;
    if (cpprof__environment_has_names_to_find())
        load_names();
    write_by(EXIT_SECONDS, false);
}

/* ---- in haste --------------------------------------------------------- */

/* No thread to libc: it has the thread-local storage of its maker, and must
 * not touch it. */
#define GUARD_FLAGS                                                            \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |        \
     CLONE_SYSVSEM)

static char guard_stack[8192] CPPROF__LARGE;
static bool guard_taken;

__attribute__((no_sanitize("address", "thread", "undefined"))) static int
guard(void *status)
{
    const struct timespec most = {SECONDS_MAX, 0};

    cpprof__syscall(SYS_nanosleep, (long)&most, 0, 0, 0, 0, 0);
    cpprof__syscall(SYS_exit_group, (long)status, 0, 0, 0, 0, 0);
    return 0;
}

static void
start_guard(int status)
{
    sigset_t all, saved;

    /* A filter may kill who makes a thread. */
    if (cpprof__proc_had_filter() || swap_acq_rel(&guard_taken, true))
        return;
    sigfillset(&all);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved, 8);
    clone(guard, guard_stack + sizeof guard_stack, GUARD_FLAGS,
          (void *)(long)status);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, 8);
}

HOOK(_exit, NULL)

CPPROF_API void
_exit(int status)
{
    ENTRY(_exit)(status);
    __builtin_unreachable();
}

CPPROF__FIRST_STEP static void
_exit_on(int status)
{
    if (cpprof__thread_pointer_is_libcs()) {
        CPPROF__EXEMPT;
        CPPROF__UNCANCELLED;

        if (end_parts(true)) {
            start_guard(status);
            write_by(HASTE_SECONDS, true);
        }
    }
    for (;;)
        cpprof__syscall(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

HOOK(_Exit, NULL)

CPPROF_API void
_Exit(int status)
{
    ENTRY(_Exit)(status);
    __builtin_unreachable();
}

static void
_Exit_on(int status)
{
    _exit_on(status);
}

/* glibc's own calls its own _exit(). */
void
cpprof__at_quick_exit(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (end_parts(true))
        write_by(HASTE_SECONDS, true);
}
