/* SPDX-License-Identifier: MIT */
/*
 * Who waits for whom. One command at a time at a process: a lock that goes with
 * who holds it. It is on /proc/PID/mem, which nobody can open who may not
 * attach: others cannot keep us waiting. And how long a command waits for a
 * process: that is counted in turns, as a thread of ours in it has one turn of
 * a processor after each of those that are ready to run.
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

/* Tunable. So many that are ready to run on a processor make no difference:
 * what a process has to do then takes milliseconds. */
#define READY_FEW 4

/* Tunable. How often the kernel is asked how many these are. */
#define ASK_NS (CPPROF__NS_PER_S / 10)

bool
cpprof__is_interrupted(void)
{
    sigset_t set;

    return !sigpending(&set) &&
           (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
            sigismember(&set, SIGHUP) || sigismember(&set, SIGQUIT));
}

bool
cpprof__turn_take(pid_t pid, int *turn)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + TURN_NS;
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    *turn = open(path, O_RDONLY | O_CLOEXEC);
    while (*turn >= 0 && flock(*turn, LOCK_EX | LOCK_NB) &&
           (errno == EWOULDBLOCK || errno == EINTR)) {
        if (cpprof__is_interrupted() ||
            cpprof__now_ns(CLOCK_MONOTONIC) > until) {
            cpprof__turn_release(*turn);
            return false;
        }
        cpprof__sleep_ns(LOOK_NS);
    }
    return true;
}

void
cpprof__turn_release(int turn)
{
    if (turn >= 0)
        close(turn);
}

/* How many times longer than alone everything takes. Source: proc(5),
 * /proc/loadavg. */
static uint64_t
slowness(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct cpprof__buffer text = {0};
    unsigned ready = 0;

    cpprof__read_proc(&text, "/proc/loadavg");
    if (!text.data ||
        sscanf((const char *)text.data, "%*s %*s %*s %u/", &ready) != 1)
        ready = 0;
    cpprof__buffer_free(&text);
    return 1 +
           ready / (unsigned)(READY_FEW * (processors > 0 ? processors : 1));
}

void
cpprof__patience_begin(struct cpprof__patience *p, uint64_t ns)
{
    p->left_ns = ns;
    p->at_ns = cpprof__now_ns(CLOCK_MONOTONIC);
}

bool
cpprof__patience_has(struct cpprof__patience *p)
{
    const uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
    uint64_t used;

    if (now - p->at_ns < ASK_NS)
        return p->left_ns > 0;
    used = (now - p->at_ns) / slowness();
    p->at_ns = now;
    p->left_ns -= used < p->left_ns ? used : p->left_ns;
    return p->left_ns > 0;
}
