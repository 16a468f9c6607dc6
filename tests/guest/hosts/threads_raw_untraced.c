/* SPDX-License-Identifier: MIT */
/* guest: 2. Threads that libc does not know, made by clone(CLONE_THREAD |
 * CLONE_UNTRACED) on stacks of some kilobytes, come and go by the hundred. */
#include "host.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define STACK (16 * 1024)

static volatile int gone[1];
static volatile unsigned n_run;

/* No function of libc that uses the thread pointer, which is the maker's. */
static int
run(void *arg)
{
    volatile unsigned i;

    for (i = 0; i < 200000; i++)
        continue;
    __atomic_add_fetch(&n_run, 1, __ATOMIC_RELAXED);
    syscall(SYS_exit, 0);
    return (int)(long)arg;
}

int
main(void)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int i;

    for (i = 0; i < 300; i++) {
        gone[0] = 1;
        EXPECT(clone(run, stack + STACK,
                     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                         CLONE_THREAD | CLONE_SYSVSEM | CLONE_UNTRACED |
                         CLONE_CHILD_CLEARTID,
                     NULL, NULL, NULL, &gone[0]) > 0,
               "no thread: %s", strerror(errno));
        while (gone[0])
            syscall(SYS_futex, &gone[0], FUTEX_WAIT, 1, NULL, NULL, 0);
    }
    EXPECT(n_run == 300, "%u ran", n_run);
    busy_ms(40);
    return host_wrong;
}
