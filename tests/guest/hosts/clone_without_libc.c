/* SPDX-License-Identifier: MIT */
/* guest: 2. Threads of a bare clone() whose thread pointer is 0, leads nowhere,
 * or is the program's own run on, and what it points at stays as it is. */
#include "host.h"
#include <sched.h>
#include <sys/syscall.h>

enum { STACK = 65536, WORDS = 4096 };

#if defined __x86_64__
#include <asm/prctl.h>

static uint64_t words[WORDS];

/* No thread-local variable is touched from here on, and no libc called. */
static long
call(long number, long a, long b)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b)
                     : "rcx", "r11", "memory");
    return result;
}

static uint64_t
cpu_ns(void)
{
    struct timespec t = {0, 0};

    call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Long enough for the scan that finds it. */
static int
work(void *pointer)
{
    call(SYS_arch_prctl, ARCH_SET_FS, (long)pointer);
    while (cpu_ns() < 1300000000u)
        for (volatile int i = 0; i < 10000; i++)
            continue;
    call(SYS_exit, 0, 0);
    return 0;
}

int
main(void)
{
    static char stacks[3][STACK] __attribute__((aligned(16)));
    void *pointers[3] = {NULL, (void *)0x7000, words + WORDS / 2};
    int tids[3], changed = 0;

    memset(words, 0x5a, sizeof words);
    for (int i = 0; i < 3; i++)
        EXPECT(clone(work, stacks[i] + STACK,
                     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                         CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
                         CLONE_CHILD_CLEARTID,
                     pointers[i], &tids[i], NULL, &tids[i]) > 0,
               "clone: %s", strerror(errno));
    for (int i = 0; i < 3; i++)
        while (__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE))
            sleep_ms(10);
    for (int i = 0; i < WORDS; i++)
        changed += words[i] != 0x5a5a5a5a5a5a5a5aull;
    EXPECT(changed == 0, "%d words changed", changed);
    return host_wrong;
}
#else
int
main(void)
{
    return 0;
}
#endif
