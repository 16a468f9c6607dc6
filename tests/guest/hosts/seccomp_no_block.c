/* SPDX-License-Identifier: MIT */
/* guest: 2. A seccomp filter refuses rt_sigprocmask(SIG_BLOCK), as tor's does.
 * No signal is blocked that was not before. libc's own pthread_create() leaves
 * a word of its stack as the mask then, which is never all signals. */
#include "host.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { ROUNDS = 20, MOST = 56 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t
mask(void)
{
    uint64_t now = 0;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &now, sizeof now);
    return now;
}

static void
open_mask(void)
{
    uint64_t none = 0;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

static void *
work(void *arg)
{
    open_mask();
    pthread_mutex_lock(&lock);
    busy_ms(2);
    pthread_mutex_unlock(&lock);
    free(malloc(100000));
    EXPECT(mask() == 0, "a thread has %#lx", (long)mask());
    return arg;
}

int
main(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIG_BLOCK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    pthread_t t;
    pid_t pid;
    int i;

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 0;
    for (i = 0; i < ROUNDS; i++) {
        EXPECT(pthread_create(&t, NULL, work, NULL) == 0, "no thread");
        EXPECT(__builtin_popcountll(mask()) <= MOST, "all are blocked: %#lx",
               (long)mask());
        open_mask();
        pthread_join(t, NULL);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        free(malloc(100000 + i));
        EXPECT(mask() == 0, "malloc or a lock: %#lx", (long)mask());
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
        open_mask();
        pid = fork();
        if (pid == 0)
            _exit(0);
        open_mask();
        EXPECT(status_of(pid) == 0, "a child ended otherwise");
        busy_ms(3);
        EXPECT(mask() == 0, "in the end: %#lx", (long)mask());
    }
    return host_wrong;
}
