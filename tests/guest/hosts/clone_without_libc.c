/* SPDX-License-Identifier: MIT */
/* guest: 2. Threads of a bare clone() whose thread pointer is 0, leads nowhere,
 * or is the program's own run on, and what it points at stays as it is. What
 * lies before it may be unmapped. */
#include "host.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { STACK = 65536, WORDS = 4096, BEFORE = 65536, N = 4 };

#if defined __x86_64__
#include <asm/prctl.h>

static uint64_t words[WORDS];
static char *mapped; /* two times BEFORE */

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
clock_ns(clockid_t clock)
{
    struct timespec t = {0, 0};

    call(SYS_clock_gettime, clock, (long)&t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
burn(uint64_t ns)
{
    uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns * host_busy / 100;

    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 10000; i++)
            continue;
}

/* A tenth of the time until the scan has found it, and then all of it. */
static int
work(void *pointer)
{
    struct timespec nap = {0, 18000000};
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + 1300000000u;

    call(SYS_arch_prctl, ARCH_SET_FS, (long)pointer);
    while (clock_ns(CLOCK_MONOTONIC) < end) {
        burn(2000000);
        call(SYS_nanosleep, (long)&nap, 0);
    }
    burn(80000000);
    if (pointer == mapped + BEFORE) {
        call(SYS_munmap, (long)mapped, BEFORE);
        burn(80000000);
    }
    call(SYS_exit, 0, 0);
    return 0;
}

int
main(void)
{
    static char stacks[N][STACK] __attribute__((aligned(16)));
    void *pointers[N] = {NULL, (void *)0x7000, words + WORDS / 2};
    int tids[N], changed = 0;

    mapped = mmap(NULL, 2 * BEFORE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pointers[3] = mapped + BEFORE;
    memset(words, 0x5a, sizeof words);
    for (int i = 0; i < N; i++)
        EXPECT(clone(work, stacks[i] + STACK,
                     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                         CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
                         CLONE_CHILD_CLEARTID,
                     pointers[i], &tids[i], NULL, &tids[i]) > 0,
               "clone: %s", strerror(errno));
    for (int i = 0; i < N; i++)
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
