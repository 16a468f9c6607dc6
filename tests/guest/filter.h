/* SPDX-License-Identifier: MIT */
/* Filters of system calls (seccomp) for hosts. */
#ifndef GUEST_FILTER_H
#define GUEST_FILTER_H

#include "host.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* A filter's lines: the number is loaded, cases by number follow, and what is
 * done with all others comes last. */
#define FILTER_BEGIN                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define FILTER_CASE(number, action)                                            \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(number), 0, 1),             \
        BPF_STMT(BPF_RET | BPF_K, action)
#define FILTER_END(action) BPF_STMT(BPF_RET | BPF_K, action)

#define REFUSE(name) FILTER_CASE(SYS_##name, SECCOMP_RET_ERRNO | EPERM)
#define TRAP(name)   FILTER_CASE(SYS_##name, SECCOMP_RET_TRAP)
#define ALLOW(name)  FILTER_CASE(SYS_##name, SECCOMP_RET_ALLOW)
#define ALLOW_OTHERS FILTER_END(SECCOMP_RET_ALLOW)

/* All that a program needs to compute, to allocate, to wait and to end; no
 * file, no thread, and not to know its thread's number or another's memory. */
#define ALLOW_WORK                                                             \
    ALLOW(read), ALLOW(write), ALLOW(close), ALLOW(brk), ALLOW(mmap),          \
        ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise),         \
        ALLOW(futex), ALLOW(getrandom), ALLOW(getpid), ALLOW(clock_gettime),   \
        ALLOW(clock_nanosleep), ALLOW(restart_syscall), ALLOW(rt_sigprocmask), \
        ALLOW(rt_sigreturn), ALLOW(exit_group)

/* Sets a filter for the calling thread, or for all by
 * SECCOMP_FILTER_FLAG_TSYNC. */
#define FILTER_SET(lines, flags)                                               \
    filter_set(lines, sizeof(lines) / sizeof *(lines), flags)

__attribute__((unused)) static void
filter_set(struct sock_filter *lines, size_t n, unsigned flags)
{
    struct sock_fprog program = {(unsigned short)n, lines};

    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    EXPECT((flags
                ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program)
                : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) == 0,
           "seccomp: %s", strerror(errno));
}

/* In a handler of SIGSYS: what the trapped call gives. */
__attribute__((unused)) static void
answer_call(void *context, long result)
{
#if defined __x86_64__
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = result;
#elif defined __aarch64__
    ((ucontext_t *)context)->uc_mcontext.regs[0] = (unsigned long)result;
#endif
}

#endif
