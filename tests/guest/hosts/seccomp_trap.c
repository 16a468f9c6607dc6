/* SPDX-License-Identifier: MIT */
/* guest: 3. Under a filter of all threads that has the program's handler of
 * SIGSYS answer some calls, as browsers have it, the program runs on, and ends
 * as it means to. */
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { STATUS = 7 };

#define TRAP(name)                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                     \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)

static void
answer(int number, siginfo_t *info, void *context)
{
#if defined __x86_64__
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined __aarch64__
    ((ucontext_t *)context)->uc_mcontext.regs[0] = -EPERM;
#endif
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
        TRAP(getdents64),
        TRAP(statx),
        TRAP(close_range),
        TRAP(tgkill),
        TRAP(socket),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    pthread_t busy;

    busy_ms(20);
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
           "seccomp: %s", strerror(errno));
    EXPECT(syscall(SYS_socket, 0, 0, 0) == -1 && errno == EPERM, "not asked");
    busy = start_busy(80);
    for (int i = 0; i < 30; i++) {
        const struct timespec t = {0, 2000000};

        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    }
    pthread_join(busy, NULL);
    return host_wrong;
}
