/* SPDX-License-Identifier: MIT */
/* guest: 3. Under seccomp that refuses what a profiler would like: the program
 * runs on unharmed. */
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define REFUSE(name)                                                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                     \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

int
main(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(perf_event_open),
        REFUSE(process_vm_readv),
        REFUSE(openat),
        REFUSE(timer_create),
        REFUSE(timer_settime),
        REFUSE(tgkill),
        REFUSE(rt_tgsigqueueinfo),
        REFUSE(unshare),
        REFUSE(memfd_create),
        REFUSE(socket),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    pthread_t busy;
    pid_t pid;

    busy_ms(20);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
           "seccomp: %s", strerror(errno));
    busy = start_busy(80);
    for (int i = 0; i < 30; i++) {
        const struct timespec t = {0, 2000000};

        EXPECT(nanosleep(&t, NULL) == 0, "nanosleep: %s", strerror(errno));
    }
    pthread_join(busy, NULL);
    pid = fork();
    if (pid == 0) {
        busy_ms(30);
        exit(3);
    }
    EXPECT(status_of(pid) == 3, "the child ended otherwise");
    return host_wrong;
}
