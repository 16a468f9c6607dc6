/* SPDX-License-Identifier: MIT */
/*
 * fork: what the parts of the library do about it (parts.c). The child begins
 * anew when all handlers of the program have run; what forks without this name
 * (daemon, forkpty) has only our own handlers for that.
 */
#include "arch/place.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/uncancelled.h"
#include "http/listen.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static __thread bool in_fork;

/* From our handler before a fork to that after it: libc has its locks then,
 * malloc's among them, and makes and ends no thread. */
static __thread volatile bool libc_forks;

bool
cpprof__in_fork(void)
{
    return libc_forks;
}

static void
prepare(void)
{
    CPPROF__UNCANCELLED;

    cpprof__loader_before_fork();
}

static void
go_on(void)
{
    CPPROF__UNCANCELLED;

    cpprof__loader_after_fork();
}

static void
before_fork(void)
{
    if (!in_fork)
        prepare();
    libc_forks = true;
}

static void
after_fork(void)
{
    libc_forks = false;
    if (!in_fork)
        go_on();
}

CPPROF__FIRST_STEP static void
begin_child(void)
{
    unsigned i;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    for (i = 0; i < CPPROF__N_PARTS; i++)
        if (cpprof__parts[i].begin_child)
            cpprof__parts[i].begin_child();
}

CPPROF__FIRST_STEP static void
in_child(void)
{
    unsigned i;
    CPPROF__UNCANCELLED;

    libc_forks = false;
    for (i = 0; i < CPPROF__N_PARTS; i++)
        if (cpprof__parts[i].in_child)
            cpprof__parts[i].in_child();
    if (!in_fork)
        begin_child();
}

CPPROF__FIRST_STEP void
cpprof__fork_begin(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

TAKE_OVER(fork, pid_t, (void), ())

CPPROF__FIRST_STEP static pid_t
fork_on(void)
{
    struct cpprof__alone alone;
    pid_t pid;

    prepare();
    in_fork = true;
    pid = cpprof__real(fork)();
    if (pid < 0 && errno == EAGAIN && cpprof__alone_again(&alone))
        pid = cpprof__alone_end(&alone, cpprof__real(fork)());
    in_fork = false;
    if (pid)
        go_on();
    else
        begin_child();
    return pid;
}

/* ---- daemons: http/follow.c ------------------------------------------- */

TAKE_OVER(setsid, pid_t, (void), ())

static pid_t
setsid_on(void)
{
    pid_t session;

    NEEDS_STORAGE(setsid, ());
    session = cpprof__real(setsid)();
    if (session >= 0)
        cpprof__http_daemonized();
    return session;
}

TAKE_OVER(daemon, int, (int keeps_folder, int keeps_files),
          (keeps_folder, keeps_files))

/* glibc's calls its own setsid. */
static int
daemon_on(int keeps_folder, int keeps_files)
{
    int failed = cpprof__real(daemon)(keeps_folder, keeps_files);

    if (!failed)
        cpprof__http_daemonized();
    return failed;
}
