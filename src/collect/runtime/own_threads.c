/* SPDX-License-Identifier: MIT */
/*
 * Threads of ours: started, known, paused, ended.
 *
 * Each has an entry in `owns` from its first statement on, and keeps it a
 * moment longer than it lives, because the kernel lists it for as long. Entries
 * are taken by compare-and-swap and read by everybody without a lock.
 *
 * A pause is three steps: the word `is_pausing` is set, and all are woken until
 * each has seen it, returned from its run(), and put itself into the list
 * `paused`; the process changes; those in the list are started again with what
 * they had. `change` is held from the first step to the last, and by who starts
 * a thread, unless that is a thread of ours, which a pause waits for.
 *
 * Threads with tables of descriptors of their own have one beside them that
 * only waits, the keeper: it holds the program's table, which would be gone
 * when the program's last thread ends, and exit handlers with it. It ends after
 * them, so that those run on it; and when there is none of them any more.
 */
#include "collect/runtime/own_threads.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "base/buffer.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/heap/heap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Drainer, ticker, background thread, who writes, threads of servers: more than
 * these are taken for the program's. */
#define OWN_MAX 256

/* A thread that said that it ends is still there for a moment. */
#define LINGER_NS 1000000000u

/* Tunables. Who waits for threads that are made looks so often, and so long:
 * one that gets no processor for a second is shown rather than waited for. */
#define SETTLE_PAUSE_NS 50000
#define SETTLE_LOOKS    20000u

/* How often a thread looks whether it is alone. */
#define LOOK_NS 1000000000u

/* Tunables. A change of credentials waits so long for threads to leave what
 * they do, and looks so often. */
#define PAUSE_NS      1000000000u
#define PAUSE_LOOK_NS 100000

/* So long the keeper waits at the end for the others, at most. */
#define OTHERS_NS 10000000000u

struct own {
    int32_t tid;       /* 0: free */
    uint64_t ended_ns; /* 0: it runs */
    bool pauses;       /* when it is asked to; one that others made does not */
    uint32_t *wake;    /* futex, which may be gone: only the kernel looks */
};
static struct own owns[OWN_MAX];
static uint32_t n_making;     /* that have not said yet that they began */
static uint64_t own_tasks_ns; /* CPU time of those */
static uint32_t n_used;       /* entries from the first that may be taken */
static int32_t pid;           /* of the process that they are in */

static struct cpprof__own_lock change;
static struct cpprof__own_lock pause_lock; /* guards the two */
static uint32_t is_pausing;
static struct cpprof__own_thread *paused;

static struct cpprof__own_lock keeper_lock; /* guards the two */
static uint32_t n_with_tables;
static bool has_keeper;
static uint32_t keeper_wake; /* futex */
static void (*keeper_task)(void);
static bool are_alone; /* one with a table saw that the program's are gone */

/* The first word of a sigset_t: all signals that there are. What the program
 * blocked where it had us start a thread. */
static uint64_t program_mask;

static __thread struct {
    bool is_own;
    const struct cpprof__own_thread *thread; /* NULL: others made it */
    bool is_alone;
    uint64_t looked_ns;
} self;

/* ---- who is one ------------------------------------------------------- */

uint64_t
cpprof__program_cpu_ns(void)
{
    return cpprof__now_ns(CLOCK_PROCESS_CPUTIME_ID) -
           load_relaxed(&own_tasks_ns);
}

bool
cpprof__own_thread_is_this(void)
{
    return self.is_own;
}

static bool
is_over(const struct own *own)
{
    uint64_t ended = load_acquire(&own->ended_ns);

    return ended && cpprof__now_ns(CLOCK_MONOTONIC) - ended > LINGER_NS;
}

static bool
runs(const struct own *own)
{
    return load_acquire(&own->tid) && !load_acquire(&own->ended_ns);
}

static void
note_used(uint32_t n)
{
    uint32_t used = load_relaxed(&n_used);

    while (used < n && !cas_acq_rel(&n_used, &used, n))
        continue;
}

static void
note_tid(int32_t tid, const struct cpprof__own_thread *t)
{
    unsigned i;

    for (i = 0; i < OWN_MAX; i++) {
        int32_t found = load_acquire(&owns[i].tid);

        if (found && !is_over(&owns[i]))
            continue;
        note_used(i + 1); /* before: a child clears what is in use */
        if (!cas_acq_rel(&owns[i].tid, &found, tid))
            continue;
        store_release(&owns[i].wake, t ? t->wake : NULL);
        store_release(&owns[i].pauses, t != NULL);
        store_release(&owns[i].ended_ns, (uint64_t)0);
        return;
    }
}

static void
note_end(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid)
            store_release(&owns[i].ended_ns, cpprof__now_ns(CLOCK_MONOTONIC));
}

/* One fewer is being made. */
static void
note_made(void)
{
    uint32_t n = load_relaxed(&n_making);

    while (n && !cas_acq_rel(&n_making, &n, n - 1))
        continue;
}

bool
cpprof__is_own_thread(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid && !is_over(&owns[i]))
            return true;
    return false;
}

bool
cpprof__own_thread_runs(int32_t tid)
{
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        if (load_acquire(&owns[i].tid) == tid && runs(&owns[i]))
            return true;
    return false;
}

uint32_t
cpprof__own_threads(void)
{
    uint32_t n = 0;
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        n += runs(&owns[i]);
    return n;
}

void
cpprof__own_threads_wait_named(void)
{
    const struct timespec pause = {0, SETTLE_PAUSE_NS};
    unsigned i;

    for (i = 0; load_acquire(&n_making) && i < SETTLE_LOOKS; i++)
        syscall(SYS_nanosleep, &pause, NULL);
}

/* ---- a thread's beginning and end ------------------------------------- */

#ifdef __SANITIZE_ADDRESS__
extern void
__asan_unpoison_memory_region(const volatile void *start, size_t n);

/* A thread that is not made by way of the sanitizer's pthread_create() may have
 * the stack of one that was, with what it has said of that. */
static void
begin_clean(void)
{
    const char *here = __builtin_frame_address(0);
    pthread_attr_t attr;
    void *stack;
    size_t n;

    if (pthread_getattr_np(pthread_self(), &attr))
        return;
    if (!pthread_attr_getstack(&attr, &stack, &n) &&
        here > (const char *)stack && here < (const char *)stack + n)
        __asan_unpoison_memory_region(stack, (size_t)(here - (char *)stack));
    pthread_attr_destroy(&attr);
}
#else
static void
begin_clean(void)
{
}
#endif

/* Where the kernel cannot (before 5.9) it is the table of all. TSan knows of
 * one table only. */
static void
leave_descriptors(void)
{
#if defined SYS_close_range && !defined __SANITIZE_THREAD__
    unsigned i;

    if (syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE))
        return;
    for (i = 0; i < 3; i++)
        if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
#endif
}

/* What a program that has left root keeps for a while is not for us: it may
 * give that up by a system call that we do not see. */
static void
leave_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

    if (geteuid())
        syscall(SYS_capset, &head, none);
}

static void
begin(struct cpprof__own_thread *t)
{
    begin_clean();
    self.is_own = true;
    self.thread = t;
    note_tid((int32_t)syscall(SYS_gettid), t);
    note_made();
}

void
cpprof__own_thread_begin(void)
{
    begin(NULL);
}

/* It stays in the list of threads, as a zombie, until the process ends. */
static bool
main_has_ended(void)
{
    struct cpprof__buffer stat = {0};
    const char *state = NULL;
    char path[64];
    bool has;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    if (cpprof__proc_read(path, &stat))
        state = strrchr((const char *)stat.data, ')');
    has = state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
    cpprof__buffer_free(&stat);
    return has;
}

static void
set_program_mask(void)
{
    uint64_t mask = load_relaxed(&program_mask);
    sigset_t set;

    sigemptyset(&set);
    memcpy(&set, &mask, sizeof mask);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/* If the main thread is gone, exit handlers of the program may run on this one:
 * with its signals, and in the heap profile. */
void
cpprof__own_thread_end(void)
{
    note_end((int32_t)syscall(SYS_gettid));
    if (main_has_ended()) {
        cpprof__hook_self.exempt = 0;
        set_program_mask();
    }
}

static void
futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* After this its owner may free it. */
static void
tell_over(struct cpprof__own_thread *t)
{
    t->is_alone = self.is_alone;
    store_release(&t->is_over, 1u);
    futex_wake(&t->is_over);
}

static void
leave_keeper(unsigned flags)
{
    if (!(flags & CPPROF__OWN_TABLE))
        return;
    if (self.is_alone)
        store_release(&are_alone, true);
    cpprof__own_lock_take(&keeper_lock);
    n_with_tables--;
    cpprof__own_lock_give(&keeper_lock);
    add_relaxed(&keeper_wake, 1u);
    futex_wake(&keeper_wake);
}

/* False: the pause is over already. */
static bool
enter_pause(struct cpprof__own_thread *t)
{
    bool enters;

    cpprof__own_lock_take(&pause_lock);
    enters = is_pausing;
    if (enters) {
        note_end((int32_t)syscall(SYS_gettid));
        t->is_joined = false;
        t->next_paused = paused;
        paused = t;
    }
    cpprof__own_lock_give(&pause_lock);
    return enters;
}

static void *
run(void *arg)
{
    struct cpprof__own_thread *t = arg;
    unsigned flags = t->flags;

    cpprof__hook_self.exempt++;
    begin(t);
    prctl(PR_SET_NAME, t->name);
    leave_capabilities();
    if (flags & CPPROF__OWN_TABLE)
        leave_descriptors();
    while (t->run(t->arg) && self.thread && !self.is_alone)
        if (enter_pause(t))
            return NULL;
    leave_keeper(flags);
    /* Joined by itself: its owner has freed it. */
    if (!self.thread)
        t = NULL;
    if (t && t->is_detached) {
        pthread_detach(pthread_self());
        note_end((int32_t)syscall(SYS_gettid));
        free(t);
        t = NULL;
    }
    cpprof__own_thread_end();
    if (t)
        tell_over(t);
    return NULL;
}

/* ---- starting --------------------------------------------------------- */

static void
note_program_mask(const sigset_t *program)
{
    uint64_t mask;

    memcpy(&mask, program, sizeof mask);
    store_relaxed(&program_mask, mask);
}

static int
create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
       void *arg)
{
    sigset_t all, saved;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    if (!self.is_own)
        note_program_mask(&saved);
    store_relaxed(&pid, (int32_t)getpid());
    add_relaxed(&n_making, 1u);
    failed = cpprof__real_pthread_create(thread, attr, start, arg);
    if (failed)
        note_made();
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return failed;
}

static int
start(struct cpprof__own_thread *t)
{
    pthread_attr_t attr;
    int failed;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, CPPROF__OWN_STACK);
    failed = create(&t->thread, &attr, run, t);
    pthread_attr_destroy(&attr);
    return failed;
}

static int
start_one(struct cpprof__own_thread *t)
{
    bool waits = !self.is_own && !cpprof__own_lock_is_mine(&change);
    int failed;

    t->is_over = 0;
    t->is_alone = false;
    if (waits)
        cpprof__own_lock_take(&change);
    failed = start(t);
    if (waits)
        cpprof__own_lock_give(&change);
    return failed;
}

static bool
keep(void *arg);

static int
start_detached(const struct cpprof__own_thread *what)
{
    struct cpprof__own_thread *t = malloc(sizeof *t);
    int failed;

    if (!t)
        return ENOMEM;
    *t = *what;
    t->is_detached = true;
    failed = start_one(t);
    if (failed)
        free(t);
    return failed;
}

/* Without a keeper there are no tables. */
static void
enter_keeper(struct cpprof__own_thread *t)
{
    const struct cpprof__own_thread keeper = {
        .name = "cpprof-keeper", .run = keep, .wake = &keeper_wake};
    bool starts;

    if (!(t->flags & CPPROF__OWN_TABLE))
        return;
    cpprof__own_lock_take(&keeper_lock);
    n_with_tables++;
    starts = !has_keeper;
    has_keeper = true;
    cpprof__own_lock_give(&keeper_lock);
    if (!starts || !start_detached(&keeper))
        return;
    t->flags &= ~(unsigned)CPPROF__OWN_TABLE;
    cpprof__own_lock_take(&keeper_lock);
    n_with_tables--;
    has_keeper = false;
    cpprof__own_lock_give(&keeper_lock);
}

int
cpprof__own_thread_start(struct cpprof__own_thread *t)
{
    int failed;
    CPPROF__UNCANCELLED;

    enter_keeper(t);
    failed = start_one(t);
    if (failed)
        leave_keeper(t->flags);
    return failed;
}

bool
cpprof__own_thread_join(struct cpprof__own_thread *t, uint64_t until_ns)
{
    if (self.thread == t) {
        self.thread = NULL;
        return true;
    }
    while (!load_acquire(&t->is_over)) {
        uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
        struct timespec left;

        if (now >= until_ns)
            return false;
        left = cpprof__timespec_of(until_ns - now < LOOK_NS ? until_ns - now
                                                            : LOOK_NS);
        syscall(SYS_futex, &t->is_over, FUTEX_WAIT, 0, &left, NULL, 0);
    }
    /* exit() may be running on it, and may be waiting for the caller. */
    if (t->is_alone)
        pthread_detach(t->thread);
    else
        pthread_join(t->thread, NULL);
    return true;
}

int
cpprof__own_thread_detached(bool (*f)(void *arg), void *arg, unsigned flags)
{
    const struct cpprof__own_thread t = {
        .name = "cpprof", .run = f, .arg = arg, .flags = flags};
    CPPROF__UNCANCELLED;

    return start_detached(&t);
}

/* ---- in somebody's stead ---------------------------------------------- */

struct own_task {
    void (*f)(void *arg);
    void *arg;
};

static bool
run_own_task(void *arg)
{
    const struct own_task *own_task = arg;

    own_task->f(own_task->arg);
    add_relaxed(&own_tasks_ns, cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID));
    return false;
}

void
cpprof__own_thread_run(void (*f)(void *arg), void *arg)
{
    struct own_task own_task = {f, arg};
    struct cpprof__own_thread thread = {
        .name = "cpprof",
        .run = run_own_task,
        .arg = &own_task,
    };
    CPPROF__UNCANCELLED;

    if (self.is_own || cpprof__own_thread_start(&thread))
        f(arg);
    else
        cpprof__own_thread_join(&thread, UINT64_MAX);
}

struct foreign {
    void *(*start)(void *arg);
    void *arg;
};

static void *
run_foreign(void *arg)
{
    const struct foreign foreign = *(struct foreign *)arg;
    void *result;

    cpprof__hook_self.exempt++;
    begin(NULL);
    free(arg);
    result = foreign.start(foreign.arg);
    cpprof__own_thread_end();
    return result;
}

int
cpprof__own_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start_routine)(void *arg), void *arg)
{
    struct foreign *foreign = malloc(sizeof *foreign);
    int failed;

    if (!foreign)
        return EAGAIN;
    *foreign = (struct foreign){start_routine, arg};
    failed = create(thread, attr, run_foreign, foreign);
    if (failed)
        free(foreign);
    return failed;
}

/* ---- the last thread -------------------------------------------------- */

static bool
others_are_ours(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    bool all = dir != NULL;

    while (all && (entry = readdir(dir))) {
        int32_t tid = (int32_t)atoi(entry->d_name);

        all = !tid || tid == (int32_t)getpid() || cpprof__is_own_thread(tid);
    }
    if (dir)
        closedir(dir);
    return all;
}

bool
cpprof__own_threads_are_alone(void)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);

    if (now - self.looked_ns < LOOK_NS)
        return false;
    self.looked_ns = now;
    self.is_alone = main_has_ended() && others_are_ours();
    return self.is_alone;
}

bool
cpprof__own_threads_pause_now(void)
{
    return load_acquire(&is_pausing);
}

bool
cpprof__own_thread_must_leave(void)
{
    return cpprof__own_threads_pause_now() || cpprof__own_threads_are_alone();
}

/* ---- the keeper ------------------------------------------------------- */

static bool
is_there(struct own *own);

static bool
others_are_there(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    bool found = false;
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++)
        found |= load_acquire(&owns[i].tid) != tid && is_there(&owns[i]);
    return found;
}

static void
outlive_others(void)
{
    const struct timespec pause = {0, PAUSE_LOOK_NS};
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + OTHERS_NS;

    while (others_are_there() && cpprof__now_ns(CLOCK_MONOTONIC) < until)
        syscall(SYS_nanosleep, &pause, NULL);
}

static bool
is_keeping(void)
{
    bool yes;

    cpprof__own_lock_take(&keeper_lock);
    yes = has_keeper = n_with_tables > 0;
    cpprof__own_lock_give(&keeper_lock);
    return yes;
}

static bool
keep(void *arg)
{
    void (*task)(void);

    (void)arg;
    for (;;) {
        uint32_t seen = load_acquire(&keeper_wake);

        task = swap_acq_rel(&keeper_task, NULL);
        if (task)
            task();
        if (cpprof__own_threads_pause_now())
            return true;
        if (!is_keeping())
            break;
        syscall(SYS_futex, &keeper_wake, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
    if (load_acquire(&are_alone))
        outlive_others();
    return false;
}

bool
cpprof__own_keeper_run(void (*f)(void))
{
    if (!self.thread || !(self.thread->flags & CPPROF__OWN_TABLE))
        return false;
    store_release(&keeper_task, f);
    add_relaxed(&keeper_wake, 1u);
    futex_wake(&keeper_wake);
    return true;
}

/* ---- pausing ---------------------------------------------------------- */

/* It has left what it did, but libc finds it until the kernel does not. */
static bool
is_there(struct own *own)
{
    int32_t tid = load_acquire(&own->tid);

    return tid && !syscall(SYS_tgkill, getpid(), tid, 0);
}

/* Those that are still to leave, or are on their way. */
static uint32_t
wake_all(void)
{
    uint32_t n = load_acquire(&n_making);
    unsigned i;

    for (i = 0; i < load_acquire(&n_used); i++) {
        uint32_t *wake = load_acquire(&owns[i].wake);

        if (!load_acquire(&owns[i].pauses))
            continue;
        n += runs(&owns[i]) || (!is_over(&owns[i]) && is_there(&owns[i]));
        if (wake && runs(&owns[i]))
            futex_wake(wake);
    }
    return n;
}

static void
set_pausing(uint32_t yes)
{
    cpprof__own_lock_take(&pause_lock);
    store_release(&is_pausing, yes);
    cpprof__own_lock_give(&pause_lock);
}

static void
join_paused(void)
{
    struct cpprof__own_thread *t;

    cpprof__own_lock_take(&pause_lock);
    for (t = paused; t; t = t->next_paused) {
        if (!t->is_joined)
            pthread_join(t->thread, NULL);
        t->is_joined = true;
    }
    cpprof__own_lock_give(&pause_lock);
}

bool
cpprof__own_threads_pause(void (*wake)(void))
{
    const struct timespec pause = {0, PAUSE_LOOK_NS};
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + PAUSE_NS;

    if (self.is_own || cpprof__own_lock_is_mine(&change) ||
        (!cpprof__own_threads() && !load_acquire(&n_making)) ||
        load_relaxed(&pid) != (int32_t)getpid()) /* after vfork() */
        return false;
    cpprof__own_lock_take(&change);
    set_pausing(1);
    while (wake_all() && cpprof__now_ns(CLOCK_MONOTONIC) < until) {
        if (wake)
            wake();
        syscall(SYS_nanosleep, &pause, NULL);
    }
    join_paused();
    return true;
}

static void
forget_detached(struct cpprof__own_thread *t)
{
    if (t->run == keep) {
        cpprof__own_lock_take(&keeper_lock);
        has_keeper = false;
        cpprof__own_lock_give(&keeper_lock);
    }
    free(t);
}

/* Who cannot be started again is over. */
void
cpprof__own_threads_resume(void)
{
    struct cpprof__own_thread *t, *next;

    set_pausing(0);
    join_paused();
    for (t = paused, paused = NULL; t; t = next) {
        next = t->next_paused;
        if (!start(t))
            continue;
        if (t->is_detached) {
            forget_detached(t);
        } else {
            leave_keeper(t->flags);
            tell_over(t);
        }
    }
    cpprof__own_lock_give(&change);
}

void
cpprof__own_threads_in_child(void)
{
    memset(owns, 0, n_used * sizeof *owns);
    n_used = 0;
    memset(&self, 0, sizeof self);
    n_making = 0;
    own_tasks_ns = 0; /* its clock begins anew */
    is_pausing = 0;
    paused = NULL;
    n_with_tables = 0;
    has_keeper = false;
    keeper_task = NULL;
    are_alone = false;
    cpprof__own_lock_in_child(&keeper_lock);
    cpprof__own_lock_in_child(&pause_lock);
    cpprof__own_lock_in_child(&change);
}
