/* SPDX-License-Identifier: MIT */
/*
 * One command at a time at a process: a lock that goes with who holds it. It is
 * on /proc/PID/mem, which nobody can open who may not attach: others cannot
 * keep us waiting.
 */
#include "cli/attach/attach.h"

#include "arch/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Tunables. More: a command waits longer for another that is slow. The second
 * is how soon it sees that that is done. */
#define TURN_NS (10 * CPPROF__NS_PER_S)
#define LOOK_NS 2000000

/* Has somebody asked us to end? These signals may be blocked. */
static bool
is_interrupted(void)
{
    sigset_t set;

    return !sigpending(&set) &&
           (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
            sigismember(&set, SIGHUP) || sigismember(&set, SIGQUIT));
}

bool
cpprof__turn_take(pid_t pid, int *turn)
{
    const struct timespec pause = {0, LOOK_NS};
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + TURN_NS;
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    *turn = open(path, O_RDONLY | O_CLOEXEC);
    while (*turn >= 0 && flock(*turn, LOCK_EX | LOCK_NB) &&
           (errno == EWOULDBLOCK || errno == EINTR)) {
        if (is_interrupted() || cpprof__now_ns(CLOCK_MONOTONIC) > until) {
            cpprof__turn_release(*turn);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

void
cpprof__turn_release(int turn)
{
    if (turn >= 0)
        close(turn);
}
