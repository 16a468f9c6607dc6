/* SPDX-License-Identifier: MIT */
/*
 * Which threads of a process may be borrowed, as far as /proc tells what they
 * wait in: the best first, and some not at all. Where a call would end
 * otherwise because its thread is stopped, nothing that is done afterwards
 * mends it: so that is asked before.
 */
#include "cli/attach/attach.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined __x86_64__ && defined __LP64__

/* --------------------------------------------------------------- calls ---- */

/* A thread that wakes for a moment within a call looks as if it were in none.
 * One that was in such a call is in none when it looks so that often. */
#define RUNS 3

/* A call of which it matters what one of its arguments is: that from 1 on; 0:
 * it matters always. */
struct call {
    short number, argument;
};

/* Has a mask of signals of its own, where this argument is one. */
static const struct call masked[] = {
    {SYS_rt_sigsuspend, 0}, {SYS_ppoll, 4},
    {SYS_pselect6, 6},      {SYS_epoll_pwait, 5},
    {SYS_epoll_pwait2, 5},  {SYS_io_uring_enter, 5},
    {SYS_io_pgetevents, 6}, {0, 0}};

/* Has it done a part of its work, it ends with that part when the thread is
 * stopped. Those that receive do so only with a flag in this argument. */
static const struct call partial[] = {
    {SYS_write, 0},    {SYS_writev, 0},
    {SYS_pwrite64, 0}, {SYS_pwritev, 0},
    {SYS_pwritev2, 0}, {SYS_sendto, 0},
    {SYS_sendmsg, 0},  {SYS_sendmmsg, 0},
    {SYS_sendfile, 0}, {SYS_splice, 0},
    {SYS_tee, 0},      {SYS_vmsplice, 0},
    {SYS_recvmmsg, 0}, {SYS_copy_file_range, 0},
    {SYS_close, 0}, /* which lingers */
    {SYS_recvfrom, 4}, {SYS_getrandom, 0},
    {SYS_recvmsg, 3},  {0, 0}};

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

/* The value that matters in a call of these; 0: it is none of them. */
static uint64_t
value_in(const struct call *calls, const struct words *w)
{
    for (; calls->number || calls->argument; calls++)
        if (calls->number == (long)w->of[0])
            return calls->argument ? w->of[calls->argument] : UINT64_MAX;
    return 0;
}

static bool
has_own_mask(const struct words *w)
{
    return value_in(masked, w) != 0;
}

static bool
may_be_partial(const struct words *w)
{
    return value_in(partial, w) & MSG_WAITALL;
}

static struct cpprof__seen_thread *
seen_thread(struct cpprof__seen_threads *seen, pid_t tid)
{
    unsigned i;

    for (i = 0; i < seen->n; i++)
        if (seen->at[i].tid == tid)
            return &seen->at[i];
    return NULL;
}

static void
note_partial(struct cpprof__seen_threads *seen, pid_t tid)
{
    struct cpprof__seen_thread *known = seen_thread(seen, tid);

    if (!known)
        known = &seen->at[seen->n < CPPROF__SEEN_MAX ? seen->n++
                                                     : CPPROF__SEEN_MAX - 1];
    *known = (struct cpprof__seen_thread){tid, 0};
}

const char *
cpprof__thread_must_not_stop(struct cpprof__seen_threads *seen, pid_t pid,
                             pid_t tid)
{
    static const char midst[] =
        "a thread waits in the midst of reading or writing";
    struct cpprof__seen_thread *known = seen_thread(seen, tid);
    struct cpprof__buffer text = {0};
    const char *why = NULL;
    struct words words;

    cpprof__read_proc(&text, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    if (text.data && *text.data >= '0' && *text.data <= '9') {
        words = words_of((char *)text.data);
        if (may_be_partial(&words)) {
            note_partial(seen, tid);
            why = midst;
        } else if (known)
            known->n_running = RUNS;
        if (has_own_mask(&words)) {
            cpprof__read_proc(&text, "/proc/%d/task/%d/status", (int)pid,
                              (int)tid);
            if (cpprof__status_pending(&text) & cpprof__status_blocked(&text))
                why = "a thread waits, and holds back a signal that has come";
        }
    } else if (known && ++known->n_running < RUNS)
        why = midst;
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

static int
rank_of(pid_t pid, pid_t tid, bool force)
{
    char state[16], name[32], filter[16];
    struct cpprof__buffer text = {0};
    struct words words;
    bool is_filtered;
    int rank = -1;

    cpprof__read_proc(&text, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    cpprof__status_field(&text, "State", state, sizeof state);
    cpprof__status_field(&text, "Name", name, sizeof name);
    cpprof__status_field(&text, "Seccomp", filter, sizeof filter);
    is_filtered = strtol(filter, NULL, 10) && !force &&
                  cpprof__attach_filter_may_kill(pid, &text);
    cpprof__read_proc(&text, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    if (text.data && (*state == 'S' || *state == 'R')) {
        words = words_of((char *)text.data);
        rank =
            *text.data >= '0' && *text.data <= '9' ? rank_of_call(&words) : 3;
    }
    cpprof__buffer_free(&text);
    if (is_filtered)
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
    const struct dirent *entry;
    char path[64];
    DIR *folder;

    *n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)t->pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        int rank = tid > 0 ? rank_of(t->pid, tid, t->force) : -1;

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
