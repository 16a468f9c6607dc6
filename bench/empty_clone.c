/* SPDX-License-Identifier: MIT */
/* As empty_thread.c, with a thread that libc knows nothing of: the least that a
 * thread costs. It has no storage of its own, so it may call nothing of libc's
 * that needs any. */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static char stack[8192] __attribute__((aligned(64)));

static int
sleep_on(void *arg)
{
    for (;;)
        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return arg != NULL;
}

static void
begin(void)
{
    clone(sleep_on, stack + sizeof stack,
          CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
              CLONE_SYSVSEM,
          NULL);
}

__attribute__((constructor)) static void
first(void)
{
    pthread_atfork(NULL, NULL, begin);
    begin();
}
