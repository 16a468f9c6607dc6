/* SPDX-License-Identifier: MIT */
/* How a program makes itself a daemon: http/follow.c. */
#include "http/listen.h"
#include "interpose/take_over.h"

#include <unistd.h>

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
