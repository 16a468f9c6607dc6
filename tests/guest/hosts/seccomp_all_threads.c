/* SPDX-License-Identifier: MIT */
/* guest: 3. A filter for all threads at once (SECCOMP_FILTER_FLAG_TSYNC),
 * while threads of the program run: it is set for each, and they go on. */
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int
main(void)
{
    struct sock_filter words[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EUCLEAN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, words};
    pthread_t threads[4];
    int i;

    for (i = 0; i < 4; i++)
        threads[i] = start_busy(200);
    busy_ms(40);
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
           "the filter is not set: %s", strerror(errno));
    EXPECT(syscall(SYS_getppid) == -1 && errno == EUCLEAN, "no filter");
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    busy_ms(40);
    return host_wrong;
}
