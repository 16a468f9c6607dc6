/* SPDX-License-Identifier: MIT */
/* How a program makes itself a daemon: http/follow.c. */
#include "collect/runtime/real.h"
#include "http/listen.h"

#include <unistd.h>

CPPROF_API pid_t
setsid(void)
{
    typedef pid_t setsid_fn(void);
    pid_t session = CPPROF__REAL(setsid_fn *, setsid)();

    if (session >= 0)
        cpprof__http_daemonized();
    return session;
}

/* glibc's calls its own setsid. */
CPPROF_API int
daemon(int keeps_folder, int keeps_files)
{
    typedef int daemon_fn(int, int);
    int failed = CPPROF__REAL(daemon_fn *, daemon)(keeps_folder, keeps_files);

    if (!failed)
        cpprof__http_daemonized();
    return failed;
}
