/* SPDX-License-Identifier: MIT */
/* Ends that run no destructors. */
#include "collect/environment.h"
#include <cpprof/status.h>

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

CPPROF_API void
_exit(int status)
{
    cpprof__environment_stop(true);
    for (;;)
        syscall(SYS_exit_group, status);
}

CPPROF_API void
_Exit(int status)
{
    _exit(status);
}
