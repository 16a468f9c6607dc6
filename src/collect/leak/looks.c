/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc/self/task/TID: syscall, which tells where a thread sleeps;
 * schedstat, how long it has run; status, how often it gave up its processor
 * itself.
 */
#include "collect/leak/looks.h"

#ifdef __x86_64__

#include "arch/kernel.h"
#include "arch/regs.h"
#include "collect/threads/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* What TCGETS writes (asm-generic/termbits.h), beside libc's own. */
struct kernel_termios {
    tcflag_t c_iflag, c_oflag, c_cflag, c_lflag;
    cc_t c_line, c_cc[19];
};

static long
call(long number, long a, long b, long c, long d)
{
    return cpprof__syscall(number, a, b, c, d, 0, 0);
}

/* ---- calls that bear a stop ------------------------------------------- */

/*
 * A read from a terminal, or from a socket, may wait for more than one byte,
 * and have a part of them: VMIN of termios(3), SO_RCVLOWAT of socket(7).
 */
static bool
waits_for_the_first(const struct cpprof__looks *l, int fd)
{
    long copy = call(SYS_pidfd_getfd, l->pidfd, fd, 0, 0);
    struct kernel_termios terminal;
    socklen_t size = sizeof(int);
    int least = 0;
    bool does;

    if (copy < 0)
        return false;
    if (!call(SYS_ioctl, copy, TCGETS, (long)&terminal, 0))
        does = terminal.c_lflag & ICANON || terminal.c_cc[VMIN] <= 1;
    else
        does = cpprof__syscall(SYS_getsockopt, copy, SOL_SOCKET, SO_RCVLOWAT,
                               (long)&least, (long)&size, 0) ||
               least <= 1;
    call(SYS_close, copy, 0, 0, 0);
    return does;
}

/* Asleep in these a thread has transferred nothing. signal(7) tells which of
 * them the kernel goes on with by itself. */
static bool
bears_stop(const struct cpprof__looks *l, const struct cpprof__task_call *at)
{
    switch (at->number) {
    case SYS_futex:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend:
    case SYS_pause:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_accept:
    case SYS_accept4:
    case SYS_flock:
    case SYS_restart_syscall:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
        return true;
    case SYS_read:
        return waits_for_the_first(l, (int)at->args[0]);
    case SYS_recvfrom:
        return !(at->args[3] & MSG_WAITALL) &&
               waits_for_the_first(l, (int)at->args[0]);
    case SYS_recvmsg:
        return !(at->args[2] & MSG_WAITALL) &&
               waits_for_the_first(l, (int)at->args[0]);
    default:
        return at->number < 0;
    }
}

/* ---- files of a thread ------------------------------------------------- */

static long
number_of(const char *text, char **end)
{
    long n = 0;

    while (*text >= '0' && *text <= '9')
        n = n * 10 + (*text++ - '0');
    *end = (char *)text;
    return n;
}

int32_t
cpprof__look_number(const char *text)
{
    char *end;

    return (int32_t)number_of(text, &end);
}

/* The text of a file of a thread, "TID/name", terminated; 0: it is gone, < 0:
 * it cannot be read. */
static long
read_file(const struct cpprof__looks *l, int32_t tid, const char *name,
          char *text, size_t size)
{
    char path[40], *at = path + sizeof path - 1;
    size_t i = 0;
    long fd, n;

    while (name[i])
        i++;
    *at = 0;
    while (i)
        *--at = name[--i];
    do
        *--at = (char)('0' + tid % 10);
    while (tid /= 10);
    fd = call(SYS_openat, l->tasks, (long)at, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd == -ENOENT || fd == -ESRCH ? 0 : fd;
    n = call(SYS_read, fd, (long)text, (long)size - 1, 0);
    call(SYS_close, fd, 0, 0, 0);
    if (n < 0)
        return n == -ESRCH ? 0 : n;
    text[n] = 0;
    return n;
}

enum place { GONE, RUNS, SLEEPS_WELL, SLEEPS_BADLY };

/* Where is a thread now? One that waits for a processor runs, too. */
static enum place
place_of(const struct cpprof__looks *l, int32_t tid)
{
    struct cpprof__task_call at = {.number = -1};
    char text[256], *end;
    unsigned i;
    long n = read_file(l, tid, "/syscall", text, sizeof text);

    if (n <= 0)
        return n ? SLEEPS_BADLY : GONE;
    if (text[0] < '0' || text[0] > '9')
        return text[0] == 'r' ? RUNS : SLEEPS_WELL;
    at.number = number_of(text, &end);
    for (i = 0; i < 6; i++)
        for (end += *end == ' ' ? 3 : 0; *end && *end != ' ' && *end != '\n';
             end++)
            at.args[i] =
                at.args[i] * 16 +
                (uintptr_t)(*end <= '9' ? *end - '0' : *end - 'a' + 10);
    return bears_stop(l, &at) ? SLEEPS_WELL : SLEEPS_BADLY;
}

bool
cpprof__look_has_ended(const struct cpprof__looks *l, int32_t tid)
{
    char text[256], *at;
    long n = read_file(l, tid, "/stat", text, sizeof text);

    if (n <= 0)
        return n == 0;
    for (at = text + n; at > text && *at != ')'; at--)
        ;
    return at[0] && at[1] && (at[2] == 'Z' || at[2] == 'X');
}

/* ---- what looks have seen ---------------------------------------------- */

/* Tunable: from so many looks to the next one it has run. One that writes more
 * than there is room for sleeps sooner. */
#define RUNS_MIN 3

/* How long it has run, in all; 0: it is not known. */
static uint64_t
ran_ns(const struct cpprof__looks *l, int32_t tid)
{
    char text[128], *end;

    return read_file(l, tid, "/schedstat", text, sizeof text) > 0
               ? (uint64_t)number_of(text, &end)
               : 0;
}

/* How often it gave up its processor itself. proc_pid_status(5) */
static uint64_t
n_sleeps(const struct cpprof__looks *l, int32_t tid)
{
    static const char name[] = "\nvoluntary_ctxt_switches:\t";
    const size_t n_name = sizeof name - 1;
    char text[4096], *end;
    long n = read_file(l, tid, "/status", text, sizeof text), at;
    size_t i;

    for (at = 0; at + (long)n_name < n; at++) {
        for (i = 0; i < n_name && text[at + (long)i] == name[i]; i++)
            ;
        if (i == n_name)
            return (uint64_t)number_of(text + at + n_name, &end);
    }
    return UINT64_MAX;
}

/* NULL: it is new. */
static struct cpprof__seen *
find_seen(struct cpprof__looks *l, int32_t tid)
{
    uint32_t i, at = l->next_seen;

    for (i = 0; i < l->n_seen; i++, at++) {
        at = at < l->n_seen ? at : 0;
        if (l->seen[at].tid == tid) {
            l->next_seen = at + 1;
            return &l->seen[at];
        }
    }
    return NULL;
}

static struct cpprof__seen *
see_first(struct cpprof__looks *l, int32_t tid)
{
    struct cpprof__seen *seen = &l->seen[l->n_seen];

    if (l->n_seen == CPPROF__LEAK_THREADS)
        return NULL;
    l->n_seen++;
    *seen = (struct cpprof__seen){.tid = tid, .ran_ns = ran_ns(l, tid)};
    return seen;
}

/* It runs, or could. */
static void
see_running(struct cpprof__looks *l, struct cpprof__seen *seen)
{
    const uint64_t ran = ran_ns(l, seen->tid), n = n_sleeps(l, seen->tid);

    seen->n_runs += ran != seen->ran_ns;
    seen->has_slept |= (seen->has_counts && n != seen->n_sleeps);
    seen->has_counts = true;
    seen->ran_ns = ran;
    seen->n_sleeps = n;
}

void
cpprof__looks_begin(struct cpprof__looks *l, bool anew)
{
    if (anew)
        l->n_seen = 0;
    l->next_seen = 0;
    l->unsure_tid = 0;
}

bool
cpprof__look_at(struct cpprof__looks *l, int32_t tid)
{
    const enum place place = place_of(l, tid);
    struct cpprof__seen *seen = find_seen(l, tid);

    if (place == GONE)
        return true;
    if (place == SLEEPS_BADLY || (!seen && !(seen = see_first(l, tid))))
        return false;
    seen->runs = place == RUNS;
    if (seen->runs) {
        see_running(l, seen);
    } else {
        seen->was_there = true;
        seen->ran_ns = ran_ns(l, tid);
    }
    if (seen->runs &&
        (seen->n_runs < RUNS_MIN || (seen->has_slept && !seen->was_there)))
        l->unsure_tid = tid;
    return true;
}

/* May a thread that runs be stopped, after the last look? One that slept then
 * has woken, and not left its call yet. One that is new has never slept. */
static bool
is_as_seen(struct cpprof__looks *l, int32_t tid)
{
    const struct cpprof__seen *seen = find_seen(l, tid);

    if (!seen)
        return n_sleeps(l, tid) == 0;
    return seen->runs ? n_sleeps(l, tid) == seen->n_sleeps
                      : ran_ns(l, tid) == seen->ran_ns;
}

bool
cpprof__look_bears_stop(struct cpprof__looks *l, int32_t tid)
{
    const enum place place = place_of(l, tid);

    return place == RUNS ? is_as_seen(l, tid) : place != SLEEPS_BADLY;
}

#endif
