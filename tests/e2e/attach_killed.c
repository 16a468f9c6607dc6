/* SPDX-License-Identifier: MIT */
/*
 * Kills a command, with all processes that it has, at its Nth system call:
 * attach_killed N COMMAND... The exit status is 0 if it was killed, 1 if it
 * ended before, and 3 if it could not be run.
 *
 * A call is counted where it begins, and that one is not carried out. The end
 * of the call before is no other moment: nothing is done in between that
 * anybody else could see.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIDS_MAX 16

static pid_t pids[PIDS_MAX];
static int n_pids;

static void
add(pid_t pid)
{
    int i;

    for (i = 0; i < n_pids; i++)
        if (pids[i] == pid)
            return;
    if (n_pids < PIDS_MAX)
        pids[n_pids++] = pid;
}

static bool
begins_a_call(pid_t pid)
{
    struct __ptrace_syscall_info info;

    return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0 &&
           info.op == PTRACE_SYSCALL_INFO_ENTRY;
}

static int
kill_all(void)
{
    int i;

    for (i = 0; i < n_pids; i++)
        kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
        ;
    return 0;
}

int
main(int argc, char **argv)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_EXITKILL;
    long n = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    pid_t first = n ? fork() : -1, pid;
    unsigned long born;
    int status, signal;

    if (first == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(argv[2], argv + 2);
        _exit(3);
    }
    if (first < 0 || waitpid(first, &status, 0) != first)
        return 3;
    ptrace(PTRACE_SETOPTIONS, first, 0, options);
    ptrace(PTRACE_SYSCALL, first, 0, 0);
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        if (!WIFSTOPPED(status)) {
            if (pid == first)
                return 1;
            continue;
        }
        add(pid);
        if (status >> 16 && !ptrace(PTRACE_GETEVENTMSG, pid, 0, &born))
            add((pid_t)born);
        signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            if (begins_a_call(pid) && --n <= 0)
                return kill_all();
            signal = 0;
        } else if (signal == SIGTRAP || signal == SIGSTOP) {
            signal = 0;
        }
        ptrace(PTRACE_SYSCALL, pid, 0, signal);
    }
    return 1;
}
