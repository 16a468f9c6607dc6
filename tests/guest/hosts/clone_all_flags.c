/* SPDX-License-Identifier: MIT */
/* guest: 2. A child of a bare clone(), with any of what it may share with its
 * maker and with libc's thread-local storage, an empty one or none, runs, calls
 * what is a system call in libc, and ends as it means to. */
#include "host.h"
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { STACK = 65536, BYTES = 8192, STATUS = 77 };

int
close_range(unsigned from, unsigned to, int flags) __THROW;

/* The loader would look for the name in the child. */
static void (*volatile leave)(int status) = _exit;
static char stack[STACK] __attribute__((aligned(16)));
static char storage[BYTES] __attribute__((aligned(64)));

/* Nothing here may fail: there may be no errno. */
__attribute__((no_stack_protector)) static int
child(void *arg)
{
    struct rlimit limit;
    char *at;
    int wrong = 0;

    (void)arg;
    for (int i = 0; i < 3; i++) {
        struct timespec now, end;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        do {
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        } while (now.tv_sec == end.tv_sec &&
                 now.tv_nsec < end.tv_nsec + 1000000);
        wrong |= getrlimit(RLIMIT_CORE, &limit) != 0;
        wrong |= setrlimit(RLIMIT_CORE, &limit) != 0;
        wrong |= (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) < 0) << 1;
        wrong |= (close_range(1000, 1001, 0) != 0) << 2;
        at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        wrong |= (at == MAP_FAILED) << 3;
        at = mremap(at, 1 << 20, 1 << 21, MREMAP_MAYMOVE);
        wrong |= (at == MAP_FAILED) << 3;
        wrong |= (munmap(at, 1 << 21) != 0) << 4;
        wrong |= (setuid(getuid()) != 0) << 5;
    }
    return wrong ? wrong : STATUS;
}

__attribute__((no_stack_protector)) static int
ends_itself(void *arg)
{
    leave(child(arg));
    return 0;
}

/* Where there is no storage libc's functions have no canary of the stack. */
__attribute__((no_stack_protector)) static int
ends_at_once(void *arg)
{
    leave(STATUS);
    return 0;
}

static void
try(unsigned long flags, int (*f)(void *), void *pointer)
{
    int status = -1, changed = 0;
    pid_t pid;

    memset(storage, 0, sizeof storage);
    pid = clone(f, stack + STACK, (int)flags | SIGCHLD, NULL, NULL, pointer,
                NULL);
    EXPECT(pid > 0, "clone %lx: %s", flags, strerror(errno));
    EXPECT(waitpid(pid, &status, 0) == pid, "wait: %s", strerror(errno));
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == STATUS,
           "%lx, %s, %s: the child ended with %x", flags,
           f == child ? "exit" : "_exit", pointer ? "its storage" : "none",
           (unsigned)status);
    for (int i = 0; i < BYTES; i++)
        changed += storage[i] != 0;
    EXPECT(changed == 0, "%lx: %d bytes changed", flags, changed);
}

int
main(void)
{
    static const unsigned long sets[] = {
        0,
        CLONE_FILES,
        CLONE_FS,
        CLONE_VFORK,
        CLONE_FILES | CLONE_FS,
        CLONE_VM,
        CLONE_VM | CLONE_VFORK,
        CLONE_VM | CLONE_FILES,
        CLONE_VM | CLONE_SIGHAND | CLONE_FS,
        CLONE_VM | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM,
        CLONE_VM | CLONE_SIGHAND | CLONE_VFORK | CLONE_IO,
    };
    struct timespec begin, end;

    EXPECT(child(NULL) == STATUS, "a call fails"); /* and all are bound */
    busy_ms(20);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (unsigned i = 0; i < sizeof sets / sizeof *sets; i++) {
        try(sets[i], child, NULL);
        try(sets[i], ends_itself, NULL);
        try(sets[i] | CLONE_SETTLS, ends_itself, storage + BYTES / 2);
        try(sets[i] | CLONE_SETTLS, ends_at_once, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    EXPECT(end.tv_sec - begin.tv_sec < 9, "it took %ld s",
           (long)(end.tv_sec - begin.tv_sec));
    return host_wrong;
}
