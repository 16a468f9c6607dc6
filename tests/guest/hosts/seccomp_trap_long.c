/* SPDX-License-Identifier: MIT */
/* guest: 3. A handler of SIGSYS that takes its time to answer a call, as that
 * of a sandbox asks another process, runs to its end, also with ticks in it. */
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { CALLS = 40 };

#define TRAP(name)                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                     \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)

static int n_asked;

static void
answer(int number, siginfo_t *info, void *context)
{
    if (info->si_syscall == SYS_socket) {
        n_asked++;
        busy_ms(4);
    }
#if defined __x86_64__
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined __aarch64__
    ((ucontext_t *)context)->uc_mcontext.regs[0] = -EPERM;
#endif
}

static void *
ask(void *on)
{
    for (int i = 0; i < CALLS; i++)
        EXPECT(syscall(SYS_socket, 0, 0, 0) == -1 && errno == EPERM,
               "not asked");
    return NULL;
}

int
main(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        TRAP(process_vm_readv),
        TRAP(perf_event_open),
        TRAP(timer_create),
        TRAP(openat),
        TRAP(tgkill),
        TRAP(socket),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    struct sigaction action = {.sa_sigaction = answer,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t other = {.ss_size = 1 << 16};
    pthread_t thread;

    busy_ms(20);
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
           "seccomp: %s", strerror(errno));
    pthread_create(&thread, NULL, ask, NULL);
    pthread_join(thread, NULL);
    /* On a stack that is not the thread's. */
    other.ss_sp = malloc(other.ss_size);
    sigaltstack(&other, NULL);
    ask(NULL);
    EXPECT(n_asked == 2 * CALLS, "%d", n_asked);
    return host_wrong;
}
