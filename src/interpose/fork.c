/* SPDX-License-Identifier: MIT */
/*
 * fork: our locks are taken before any handler of pthread_atfork runs and the
 * child's own session is started after all of them have run, when the
 * program's allocator works again. What forks without this name (daemon,
 * forkpty) comes by the handlers that are registered in init.c.
 */
#include "interpose/fork.h"
#include "collect/dump/blocked_thread.h"
#include "collect/dump/dump.h"
#include "collect/encode/names.h"
#include "collect/heap/heap_maps.h"
#include "collect/registry/registry.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/waits/waits.h"
#include "collect/store/tables.h"
#include "collect/wall/wall.h"
#include "http/listen.h"
#include "interpose/take_over.h"
#include "push/process.h"
#include "vm/profile/session.h"

#include <stdbool.h>
#include <unistd.h>

static __thread bool in_fork;

/* The tables' lock is inside the session's: the drainer takes both. */
void
cpprof__before_fork(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (in_fork)
        return;
    cpprof__vm_fork_prepare();
    cpprof__http_fork_prepare();
    cpprof__wall_fork_prepare();
    cpprof__dump_fork_prepare();
    cpprof__session_fork_prepare();
    cpprof__tables_fork_prepare();
    cpprof__names_fork_prepare();
    cpprof__registry_fork_prepare();
    cpprof__thread_creation_fork_prepare();
    cpprof__maps_fork_prepare();
}

void
cpprof__after_fork_in_parent(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (in_fork)
        return;
    cpprof__maps_fork_done();
    cpprof__thread_creation_fork_parent();
    cpprof__registry_fork_parent();
    cpprof__names_fork_parent();
    cpprof__tables_fork_parent();
    cpprof__session_fork_parent();
    cpprof__dump_fork_parent();
    cpprof__wall_fork_parent();
    cpprof__http_fork_parent();
    cpprof__vm_fork_parent();
}

void
cpprof__after_fork_in_child(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    if (in_fork)
        return;
    cpprof__maps_fork_done();
    cpprof__thread_creation_fork_child();
    cpprof__blocked_thread_note_main();
    cpprof__own_threads_fork_child();
    cpprof__registry_fork_child();
    cpprof__names_fork_child();
    cpprof__tables_fork_child();
    cpprof__heap_forked();
    cpprof__waits_forked();
    cpprof__session_fork_child();
    cpprof__dump_fork_child();
    cpprof__wall_fork_child();
    cpprof__http_fork_child();
    cpprof__vm_fork_child();
    cpprof__push_fork_child();
    cpprof__environment_start_child();
    cpprof__http_begin_child();
    cpprof__push_begin_child();
}

TAKE_OVER(fork, pid_t, (void), ())

static pid_t
fork_on(void)
{
    pid_t pid;

    cpprof__before_fork();
    in_fork = true;
    pid = cpprof__real(fork)();
    in_fork = false;
    if (pid)
        cpprof__after_fork_in_parent();
    else
        cpprof__after_fork_in_child();
    return pid;
}

/* ---- daemons: http/follow.c ------------------------------------------- */

TAKE_OVER(setsid, pid_t, (void), ())

static pid_t
setsid_on(void)
{
    pid_t session = cpprof__real(setsid)();

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
