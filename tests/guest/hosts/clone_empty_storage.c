/* SPDX-License-Identifier: MIT */
/* guest: 2. A child that has the process's memory and an empty thread-local
 * storage, as the sandbox of Chromium makes one, calls what libc only hands on
 * to the kernel, and ends by _exit(). Nothing is written to that storage, and
 * the status is its own. */
#include "host.h"
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { STACK = 65536, BYTES = 8192, ROUNDS = 20 };

int
close_range(unsigned from, unsigned to, int flags) __THROW;

/* Nothing here may fail: there is no errno. */
static int
child(void *arg)
{
    struct rlimit limit;
    stack_t stack = {.ss_flags = SS_DISABLE};
    int wrong = 0;

    (void)arg;
    wrong |= chdir("/") != 0;
    wrong |= getrlimit(RLIMIT_CORE, &limit) != 0;
    wrong |= setrlimit(RLIMIT_CORE, &limit) != 0;
    wrong |= (sigaltstack(&stack, NULL) != 0) << 1;
    wrong |= (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) < 0) << 2;
    wrong |= (unshare(CLONE_FS) != 0) << 3;
    wrong |= (close_range(1000, 1001, 0) != 0) << 4;
    wrong |= (setsid() < 0) << 5;
    _exit(wrong ? wrong : 77);
}

int
main(void)
{
    static char stack[STACK] __attribute__((aligned(16)));
    static char storage[BYTES] __attribute__((aligned(64)));
    int i, j, status, changed = 0;
    pid_t pid;

    free(malloc(1));
    for (i = 0; i < ROUNDS; i++) {
        busy_ms(5);
        pid = clone(child, stack + STACK,
                    CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, NULL, NULL,
                    storage + BYTES / 2, NULL);
        EXPECT(pid > 0, "clone: %s", strerror(errno));
        status = -1;
        EXPECT(waitpid(pid, &status, 0) == pid, "wait: %s", strerror(errno));
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 77,
               "the child ended with %x", (unsigned)status);
        for (j = 0; j < BYTES; j++)
            changed += storage[j] != 0;
    }
    EXPECT(changed == 0, "%d bytes changed", changed);
    return host_wrong;
}
