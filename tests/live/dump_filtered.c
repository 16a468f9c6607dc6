/* SPDX-License-Identifier: MIT */
/* A dump where the kernel refuses process_vm_readv(), as Docker's filter did
 * for long: the stacks of threads that sleep are read nevertheless. */
#include "dump.h"
#include "others.h"
#include "tap.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static void *
stayer(void *arg)
{
    crowd_wait();
    return arg;
}

int
main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {4, code};
    struct crowd crowd;
    struct profile *p;
    int lowest[2];

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        check_skip("stacks_where_the_kernel_does_not_copy", "no seccomp");
        return check_done();
    }
    crowd = crowd_make(5, stayer);
    let_others_sleep();
    lowest[0] = dup(0);
    close(lowest[0]);
    p = dump_take("goroutine");
    lowest[1] = dup(0);
    close(lowest[1]);
    check_equal(dump_count(p, "stayer"), 5,
                "stacks_are_read_where_the_kernel_does_not_copy");
    check_equal(dump_count(p, "main"), 1, "and_the_caller_s");
    check_equal(lowest[1], lowest[0], "and_no_descriptor_is_left");
    profile_free(p);
    crowd_end(&crowd);
    return check_done();
}
