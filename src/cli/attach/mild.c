/* SPDX-License-Identifier: MIT */
/*
 * Does the seccomp filter of this process let others be profiled that have it?
 * A child makes each call that the library makes in a process, with arguments
 * that the kernel refuses. If it is killed for that, so would be the process. A
 * filter that looks at arguments may decide otherwise.
 */
#include "cli/attach/attach.h"

#include "arch/kernel.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __x86_64__ && defined __LP64__

static const short calls[] = {
    SYS_arch_prctl,
    SYS_capset,
    SYS_clock_getres,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_clone,
    SYS_clone3,
    SYS_close,
    SYS_close_range,
    SYS_dup,
    SYS_fallocate,
    SYS_fcntl,
    SYS_flock,
    SYS_fstat,
    SYS_fstatfs,
    SYS_ftruncate,
    SYS_futex,
    SYS_getdents64,
    SYS_getpid,
    SYS_getpriority,
    SYS_getrandom,
    SYS_getrlimit,
    SYS_getrusage,
    SYS_getsockopt,
    SYS_gettid,
    SYS_ioctl,
    SYS_lseek,
    SYS_madvise,
    SYS_membarrier,
    SYS_memfd_create,
    SYS_mincore,
    SYS_mkdirat,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    SYS_newfstatat,
    SYS_openat,
    SYS_perf_event_open,
    SYS_pipe2,
    SYS_poll,
    SYS_prctl,
    SYS_pread64,
    SYS_prlimit64,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_pwrite64,
    SYS_read,
    SYS_readlinkat,
    SYS_renameat2,
    SYS_rseq,
    SYS_rt_sigaction,
    SYS_rt_sigpending,
    SYS_rt_sigprocmask,
    SYS_rt_sigqueueinfo,
    SYS_rt_sigtimedwait,
    SYS_rt_tgsigqueueinfo,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_setaffinity,
    SYS_sched_setscheduler,
    SYS_set_robust_list,
    SYS_setpriority,
    SYS_sigaltstack,
    SYS_statfs,
    SYS_statx,
    SYS_sysinfo,
    SYS_tgkill,
    SYS_timer_create,
    SYS_timer_delete,
    SYS_timer_getoverrun,
    SYS_timer_gettime,
    SYS_timer_settime,
    SYS_uname,
    SYS_unlinkat,
    SYS_unshare,
    SYS_wait4,
    SYS_write,
    SYS_writev,
};

bool
cpprof__attach_filter_is_mild(void)
{
    static bool is_known, is_mild;
    int status;
    pid_t pid;
    size_t i;

    if (is_known)
        return is_mild;
    pid = fork();
    if (pid == 0) {
        for (i = 0; i < sizeof calls / sizeof *calls; i++)
            syscall(calls[i], -1L, -1L, -1L, -1L, -1L, -1L);
        _exit(0);
    }
    is_mild = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    is_known = true;
    return is_mild;
}

#else

bool
cpprof__attach_filter_is_mild(void)
{
    return false;
}

#endif
