/* SPDX-License-Identifier: MIT */
/*
 * What a container may not do, refused by a seccomp filter as Docker's default
 * profile refuses it to processes without capabilities, and ptrace besides, as
 * before kernel 4.8; or not.
 *
 *     confine [-ptrace] COMMAND WORD...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Younger than the headers of glibc 2.31. */
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define LOAD(at)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define ERROR(sys)   (SECCOMP_RET_ERRNO | (sys))
#define NAMESPACES                                                             \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |               \
     CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP)

static struct sock_filter lines[256];
static unsigned short n_lines;

static void
add(struct sock_filter line)
{
    lines[n_lines++] = line;
}

static void
refuse(unsigned call, int sys)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    add((struct sock_filter)RETURN(ERROR(sys)));
}

static const unsigned refused[] = {
    SYS_acct,
    SYS_add_key,
    SYS_bpf,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_fanotify_init,
    SYS_finit_module,
    SYS_get_mempolicy,
    SYS_init_module,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_io_uring_setup,
    SYS_kcmp,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_mbind,
    SYS_mount,
    SYS_move_mount,
    SYS_move_pages,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_open_tree,
    SYS_perf_event_open,
    SYS_personality,
    SYS_pidfd_getfd,
    SYS_pivot_root,
    SYS_process_madvise,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_set_mempolicy,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_syslog,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
};

int
main(int argc, char **argv)
{
    bool may_trace = argc > 1 && strcmp(argv[1], "-ptrace") == 0;
    struct sock_fprog program = {0, lines};
    size_t i;

    argc -= may_trace;
    argv += may_trace;
    add((struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
    for (i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i] != SYS_ptrace || !may_trace)
            refuse(refused[i], EPERM);
    /* What a thread is to share cannot be looked at: libc falls back. */
    refuse(SYS_clone3, ENOSYS);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0,
                                     3));
    add((struct sock_filter)LOAD(offsetof(struct seccomp_data, args)));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0,
                                     1));
    add((struct sock_filter)RETURN(ERROR(EPERM)));
    add((struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
    program.len = n_lines;
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("confine");
        return 99;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 99;
}
