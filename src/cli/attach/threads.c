/* SPDX-License-Identifier: MIT */
/*
 * Which threads of a process may be borrowed, as far as /proc tells what they
 * wait in: the best first, and some not at all. Where a call would end
 * otherwise because its thread is stopped, nothing that is done afterwards
 * mends it: so that is asked before.
 */
#include "cli/attach/attach.h"

#include "arch/clock.h"
#include "arch/kernel.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#if defined __x86_64__ && defined __LP64__

/* --------------------------------------------------------------- calls ---- */

/* As in the kernel's include/linux/posix-timers_types.h: CPUCLOCK_VIRT. */
#define USER_CLOCK 1u

/* Tunables. A busy thread is waited for so long to be seen in user mode. */
#define USER_LOOK_NS 100000u
#define USER_LOOKS   200u

/* A call for which it matters what one of its arguments is, that from 1 on: has
 * it one of these bits? 0: it matters always. */
struct call {
    short number, argument;
    uint64_t bits;
};

#define ANY  UINT64_MAX
#define MANY (~(uint64_t)1) /* more than one */

/* Has a mask of signals of its own. */
static const struct call masked[] = {
    {SYS_rt_sigsuspend, 0, 0},  {SYS_ppoll, 4, ANY},
    {SYS_pselect6, 6, ANY},     {SYS_epoll_pwait, 5, ANY},
    {SYS_epoll_pwait2, 5, ANY}, {SYS_io_uring_enter, 5, ANY},
    {SYS_io_pgetevents, 6, ANY}};

/* Has it done a part of its work, it ends with that part when the thread is
 * stopped. */
static const struct call partial[] = {
    {SYS_write, 0, 0},
    {SYS_writev, 0, 0},
    {SYS_pwrite64, 0, 0},
    {SYS_pwritev, 0, 0},
    {SYS_pwritev2, 0, 0},
    {SYS_sendto, 0, 0},
    {SYS_sendmsg, 0, 0},
    {SYS_sendmmsg, 0, 0},
    {SYS_sendfile, 0, 0},
    {SYS_splice, 0, 0},
    {SYS_tee, 0, 0},
    {SYS_vmsplice, 0, 0},
    {SYS_recvmmsg, 0, 0},
    {SYS_copy_file_range, 0, 0},
    {SYS_getrandom, 0, 0},
    {SYS_close, 0, 0}, /* which lingers */
    {SYS_recvfrom, 4, MSG_WAITALL},
    {SYS_recvmsg, 3, MSG_WAITALL},
    {SYS_io_getevents, 2, MANY},
    {SYS_io_pgetevents, 2, MANY},
    {SYS_io_uring_enter, 2, ANY}, /* submits, and then waits */
    {SYS_io_uring_enter, 3, MANY}};

/* So may these, of what they read from: it has a least number of bytes. */
static const struct call reading[] = {{SYS_read, 0, 0},
                                      {SYS_readv, 0, 0},
                                      {SYS_recvfrom, 0, 0},
                                      {SYS_recvmsg, 0, 0}};

/* Of the text of /proc/PID/task/TID/syscall: the number of the call, and its
 * arguments. */
struct words {
    uint64_t of[7];
};

static struct words
words_of(const char *call)
{
    struct words words;
    char *end;
    size_t i;

    for (i = 0; i < sizeof words.of / sizeof *words.of; i++) {
        words.of[i] = strtoull(call, &end, 0);
        call = end;
    }
    return words;
}

#define N(array) (sizeof(array) / sizeof *(array))

static bool
is_one_of(const struct call *calls, size_t n, const struct words *w)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (calls[i].number == (long)w->of[0] &&
            (!calls[i].argument || w->of[calls[i].argument] & calls[i].bits))
            return true;
    return false;
}

/* By a descriptor of ours for the same file, for a moment. */
static bool
has_least_number(pid_t pid, int fd)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int ours = (int)syscall(SYS_pidfd_getfd, process, fd, 0), least = 1;
    socklen_t n = sizeof least;
    struct termios terminal;

    if (ours >= 0 && tcgetattr(ours, &terminal) == 0)
        least = terminal.c_lflag & ICANON ? 1 : terminal.c_cc[VMIN];
    else if (ours >= 0)
        getsockopt(ours, SOL_SOCKET, SO_RCVLOWAT, &least, &n);
    if (ours >= 0)
        close(ours);
    if (process >= 0)
        close(process);
    return least > 1;
}

static bool
may_be_partial(const struct words *w)
{
    return is_one_of(partial, N(partial), w);
}

/* False: it is in none, as far as is known. */
static bool
read_call(struct cpprof__buffer *text, pid_t pid, pid_t tid)
{
    cpprof__read_proc(text, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    return text->data && *text->data >= '0' && *text->data <= '9';
}

/* The process's time in user mode goes on: by each tick of the kernel that
 * finds it there, or all the time. A thread that runs is in no call then, or in
 * one that has just begun. False: it has not in so long. */
static bool
comes_to_user_mode(pid_t pid)
{
    const clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | USER_CLOCK);
    struct timespec before, now;
    unsigned i;

    if (clock_gettime(clock, &before))
        return true; /* it has ended, or there is no such clock */
    for (i = 0; i < USER_LOOKS; i++) {
        cpprof__sleep_ns(USER_LOOK_NS);
        if (clock_gettime(clock, &now) ||
            cpprof__ns_of(now) != cpprof__ns_of(before))
            return true;
    }
    return false;
}

static const char *
why_not_in(pid_t pid, pid_t tid, const struct words *w)
{
    struct cpprof__buffer text = {0};
    const char *why = NULL;

    if (may_be_partial(w) || (is_one_of(reading, N(reading), w) &&
                              has_least_number(pid, (int)w->of[1])))
        return "a thread waits in the midst of reading or writing";
    if (is_one_of(masked, N(masked), w)) {
        cpprof__read_proc(&text, "/proc/%d/task/%d/status", (int)pid, (int)tid);
        if (cpprof__status_pending(&text) & cpprof__status_blocked(&text))
            why = "a thread waits, and holds back a signal that has come";
        cpprof__buffer_free(&text);
    }
    return why;
}

const char *
cpprof__thread_must_not_stop(pid_t pid, pid_t tid)
{
    struct cpprof__buffer text = {0};
    const char *why = NULL;
    struct words words;
    bool is_in_call = read_call(&text, pid, tid);

    /* One that woke within a call sleeps again by then. */
    if (!is_in_call && !comes_to_user_mode(pid))
        why = "a thread is at work in the kernel, maybe in the midst of "
              "reading or writing";
    else if (is_in_call || read_call(&text, pid, tid)) {
        words = words_of((char *)text.data);
        why = why_not_in(pid, tid, &words);
    }
    cpprof__buffer_free(&text);
    return why;
}

/* --------------------------------------------------------------- order ---- */

/* How good is a thread, by the call that it is in? < 0: not to be touched. */
static int
rank_of_call(const struct words *w)
{
    static const short waits[] = {
        SYS_epoll_wait, SYS_epoll_pwait,     SYS_ppoll,   SYS_select,
        SYS_pselect6,   SYS_accept,          SYS_accept4, SYS_recvfrom,
        SYS_recvmsg,    SYS_rt_sigtimedwait, SYS_wait4,   SYS_waitid,
        SYS_read};
    /* Of these the kernel keeps the time that is left: guest.c. */
    static const short timed[] = {SYS_poll, SYS_nanosleep, SYS_clock_nanosleep,
                                  SYS_futex};
    static const short never[] = {SYS_vfork,  SYS_fork,       SYS_clone,
                                  SYS_clone3, SYS_execve,     SYS_execveat,
                                  SYS_exit,   SYS_exit_group, SYS_rt_sigreturn};
    long number = (long)w->of[0];
    size_t i;

    for (i = 0; i < sizeof never / sizeof *never; i++)
        if (never[i] == number)
            return -1;
    if (may_be_partial(w))
        return 4;
    for (i = 0; i < sizeof waits / sizeof *waits; i++)
        if (waits[i] == number)
            return 0;
    for (i = 0; i < sizeof timed / sizeof *timed; i++)
        if (timed[i] == number)
            return 1;
    return 2;
}

/* Threads of ours, of an attach before, are left alone: they may return only
 * when the call that waits for them is carried out. */
#define OWN_NAME "cpprof"

/* Who a thread is, and where its files are: others than the first thread's, if
 * the program has changed that by bare system calls. */
struct place {
    char users[64], groups[64];
    dev_t device;
    ino_t root;
};

static struct place
place_of(pid_t pid, pid_t tid, const struct cpprof__buffer *status)
{
    struct place place = {.root = 0};
    struct stat root;
    char path[64];

    cpprof__status_field(status, "Uid", place.users, sizeof place.users);
    cpprof__status_field(status, "Gid", place.groups, sizeof place.groups);
    snprintf(path, sizeof path, "/proc/%d/task/%d/root/.", (int)pid, (int)tid);
    if (!stat(path, &root)) {
        place.device = root.st_dev;
        place.root = root.st_ino;
    }
    return place;
}

static bool
is_same_place(const struct place *a, const struct place *b)
{
    return !strcmp(a->users, b->users) && !strcmp(a->groups, b->groups) &&
           a->device == b->device && a->root == b->root;
}

static int
rank_of(pid_t pid, pid_t tid, const struct place *first, bool force)
{
    char state[16], name[32], filter[16];
    struct cpprof__buffer text = {0};
    struct words words;
    struct place place;
    bool is_filtered;
    int rank = -1;

    cpprof__read_proc(&text, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    cpprof__status_field(&text, "State", state, sizeof state);
    cpprof__status_field(&text, "Name", name, sizeof name);
    cpprof__status_field(&text, "Seccomp", filter, sizeof filter);
    place = place_of(pid, tid, &text);
    is_filtered = strtol(filter, NULL, 10) && !force &&
                  cpprof__attach_filter_may_kill(pid, &text);
    if (*state == 'S' || *state == 'R') {
        rank = 3;
        if (read_call(&text, pid, tid)) {
            words = words_of((char *)text.data);
            rank = rank_of_call(&words);
        }
    }
    cpprof__buffer_free(&text);
    if (is_filtered || !is_same_place(&place, first))
        return -1;
    return tid != pid && !strncmp(name, OWN_NAME, strlen(OWN_NAME)) ? -1 : rank;
}

static int
by_rank(const void *a, const void *b)
{
    const struct cpprof__candidate *x = a, *y = b;

    return x->rank != y->rank ? x->rank - y->rank : x->tid - y->tid;
}

struct cpprof__candidate *
cpprof__threads_to_try(const struct cpprof__target *t, size_t *n)
{
    struct cpprof__candidate *found = NULL, *more;
    struct cpprof__buffer status = {0};
    const struct dirent *entry;
    struct place first;
    char path[64];
    DIR *folder;

    *n = 0;
    cpprof__read_proc(&status, "/proc/%d/status", (int)t->pid);
    first = place_of(t->pid, t->pid, &status);
    cpprof__buffer_free(&status);
    snprintf(path, sizeof path, "/proc/%d/task", (int)t->pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        int rank = tid > 0 ? rank_of(t->pid, tid, &first, t->force) : -1;

        if (rank < 0)
            continue;
        more = reallocarray(found, *n + 1, sizeof *found);
        if (!more)
            break;
        found = more;
        found[(*n)++] = (struct cpprof__candidate){tid, rank};
    }
    if (folder)
        closedir(folder);
    if (*n)
        qsort(found, *n, sizeof *found, by_rank);
    return found;
}

#endif
