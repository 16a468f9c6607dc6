/* SPDX-License-Identifier: MIT */
/* The library's first and last steps in a process, and around its forks. */
#include "collect/environment.h"
#include "collect/session.h"

#include <pthread.h>

static void
in_child(void)
{
    cpprof__session_fork_child();
    cpprof__environment_start_child();
}

__attribute__((constructor)) static void
first(void)
{
    pthread_atfork(cpprof__session_fork_prepare, cpprof__session_fork_parent,
                   in_child);
    cpprof__environment_start();
}

__attribute__((destructor)) static void
last(void)
{
    cpprof__environment_stop(false);
}
