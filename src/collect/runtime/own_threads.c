/* SPDX-License-Identifier: MIT */
/*
 * Starts, pauses and ends threads of ours. own_list.c knows which threads are
 * ours; keeper.c keeps the program's descriptors while they run.
 *
 * A pause is three steps: the word `is_pausing` is set, and all are woken until
 * each has seen it, returned from its run(), and put itself into the list
 * `paused`; the process changes; those in the list are started again with what
 * they had. `change` is held from the first step to the last. Whoever starts a
 * thread holds it, too, except a thread of ours, which a pause waits for.
 *
 * Invariants: a thread that wants a table of descriptors, or a keeper, is
 * counted by the keeper before it is made, until it has ended or could not be
 * made; pauses are in between. It leaves the program's table only while a
 * keeper is there, which stands before it in `paused`, so it is started again
 * before it.
 */
#include "collect/runtime/own_threads.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/kernel.h"
#include "arch/place.h"
#include "collect/runtime/keeper.h"
#include "collect/runtime/own_list.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/thread.h"
#include "own/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Tunables. A change of credentials waits so long for threads to leave what
 * they do, and looks so often. */
#define PAUSE_NS      1000000000u
#define PAUSE_LOOK_NS 100000

/* Tunables. A thread that could not be made is tried for again after this, and
 * so often, each time after twice as long. */
#define TRY_NS 1000000u
#define TRIES  5

static struct cpprof__own_lock change CPPROF__AT_START;
static struct cpprof__own_lock pause_lock CPPROF__AT_START; /* guards the two */
static uint32_t is_pausing CPPROF__AT_START;
static struct cpprof__own_thread *paused CPPROF__AT_START;

/* The first that is detached, which most processes have only to sleep. */
static struct cpprof__own_thread detached CPPROF__AT_START;
static bool has_detached CPPROF__AT_START; /* it is in use */

/* Threads of the program were there after its main thread. */
static bool outlived_main CPPROF__AT_START;
/* CPU time of cpprof__own_thread_run(). */
static uint64_t own_tasks_ns CPPROF__AT_START;
static int32_t pid CPPROF__AT_START; /* of the process that they are in */
static bool had_rseq CPPROF__AT_START;

/* The first word of a sigset_t: all signals that there are. What the program
 * blocked where it had us start a thread. */
static uint64_t program_mask CPPROF__AT_START;

static __thread struct {
    bool is_own;
    const struct cpprof__own_thread *thread; /* NULL: others made it */
    bool has_table; /* of descriptors, which is not the program's */
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

CPPROF__FIRST_STEP bool
cpprof__own_thread_is_this(void)
{
    return self.is_own;
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
#ifndef __SANITIZE_THREAD__
    unsigned i;

    if (syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE))
        return;
    self.has_table = true;
    for (i = 0; i < 3; i++)
        if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
#endif
}

/* What a program that has left root keeps for a while is not for us: it may
 * give that up by a system call that we do not see. One that may come back to
 * root has not left it: libc has each thread change its user with the program,
 * and ends the process where one may not. */
static void
leave_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    uid_t real, effective, saved;

    if (!getresuid(&real, &effective, &saved) && real && effective && saved)
        syscall(SYS_capset, &head, none);
}

CPPROF__FIRST_STEP static void
begin(struct cpprof__own_thread *t)
{
    sigset_t unused;

    begin_clean();
    /* Where a filter refuses SIG_BLOCK libc gives it a mask of no meaning. */
    cpprof__block_signals(&unused);
    if (load_relaxed(&cpprof__counter_is_forbidden)) /* also by libraries */
        cpprof__syscall(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0, 0);
    self.is_own = true;
    self.thread = t;
    self.looked_ns = cpprof__clock_ns(CLOCK_MONOTONIC); /* see late.c */
    cpprof__own_list_begin(t != NULL, t ? t->wake : NULL);
    cpprof__own_list_expect_no_more();
}

void
cpprof__own_thread_begin(void)
{
    begin(NULL);
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

/*
 * The main thread, the last of the program's, ended by the raw system call, or
 * was killed alone, as seccomp does: libc does not know that it is gone, and
 * the kernel would take the status of whichever thread of ours is the last. It
 * takes that of the main thread only where no other outlived it.
 */
static void
end_as_main_did(int status)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + PAUSE_NS;

    while (cpprof__own_threads() && cpprof__now_ns(CLOCK_MONOTONIC) < until)
        cpprof__sleep_ns(PAUSE_LOOK_NS);
    if (WIFSIGNALED(status)) {
        sigset_t all;

        signal(WTERMSIG(status), SIG_DFL);
        sigfillset(&all);
        pthread_sigmask(SIG_UNBLOCK, &all, NULL);
        /* The process' own would go to another of our threads that is here,
         * and might come after this one's exit_group(). */
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), WTERMSIG(status));
    }
    syscall(SYS_exit_group, WEXITSTATUS(status));
}

/* If the main thread is gone, exit handlers of the program may run on this one:
 * with its signals, and in the heap profile. */
void
cpprof__own_thread_end(void)
{
    int status;

    cpprof__own_list_end();
    if (!cpprof__proc_main_has_ended(&status))
        return;
    if (status && !load_relaxed(&outlived_main) && cpprof__own_list_is_all())
        end_as_main_did(status);
    cpprof__hook_self.exempt = 0;
    set_program_mask();
}

/* After this its owner may free it. */
static void
tell_over(struct cpprof__own_thread *t)
{
    t->is_alone = self.is_alone;
    store_release(&t->is_over, 1u);
    cpprof__futex_wake(&t->is_over);
}

static void
leave_keeper(unsigned flags)
{
    if (flags & CPPROF__OWN_TABLE)
        cpprof__keeper_leave(self.is_alone);
}

/*
 * At exit() LeakSanitizer reports blocks of malloc() that no pointer leads to.
 * It does not know our threads and does not read their stacks. So the memory of
 * a detached thread is ours, and run() tells LeakSanitizer to ignore what our
 * threads allocate.
 */
CPPROF__FIRST_STEP static struct cpprof__own_thread *
new_detached(void)
{
    if (!swap_acq_rel(&has_detached, true))
        return &detached;
    return cpprof__calloc(1, sizeof detached);
}

static void
free_detached(struct cpprof__own_thread *t)
{
    if (t == &detached)
        store_release(&has_detached, false);
    else
        cpprof__free(t);
}

/* Keepers stand first. */
static void
add_paused(struct cpprof__own_thread *t)
{
    struct cpprof__own_thread **at = &paused;

    while (*at && !cpprof__keeper_is(t))
        at = &(*at)->next_paused;
    t->next_paused = *at;
    *at = t;
}

/* False: the pause is over already. */
static bool
enter_pause(struct cpprof__own_thread *t)
{
    bool enters;

    cpprof__own_lock_take(&pause_lock);
    enters = is_pausing;
    if (enters) {
        cpprof__own_list_end();
        t->is_joined = false;
        add_paused(t);
    }
    cpprof__own_lock_give(&pause_lock);
    return enters;
}

extern void
__lsan_disable(void) __attribute__((weak));

CPPROF__FIRST_STEP static void *
run(void *arg)
{
    struct cpprof__own_thread *t = arg;
    unsigned flags = t->flags;

    t->thread = pthread_self();
    cpprof__hook_self.exempt++;
    /* Where the program's do: a library that came late has seen none begin. */
    cpprof__thread_begins_at(0, __builtin_return_address(0));
    begin(t);
    if (__lsan_disable)
        __lsan_disable();
    prctl(PR_SET_NAME, t->name);
    leave_capabilities();
    if (flags & CPPROF__OWN_TABLE && cpprof__keeper_is_there())
        leave_descriptors();
    while (t->run(t->arg) && self.thread && !self.is_alone)
        if (enter_pause(t))
            return NULL;
    leave_keeper(flags);
    /* Joined by itself: its owner has freed it. */
    if (!self.thread)
        t = NULL;
    if (t && t->is_detached) {
        cpprof__real_pthread_detach(pthread_self());
        cpprof__own_list_end();
        free_detached(t);
        t = NULL;
    }
    cpprof__own_thread_end();
    if (t)
        tell_over(t);
    return NULL;
}

/* ---- starting --------------------------------------------------------- */

/* No flags like these are there, so nothing is changed. */
CPPROF__FIRST_STEP static bool
has_rseq(void)
{
    return cpprof__syscall(SYS_rseq, 0, 0, ~0, 0, 0, 0) == -EINVAL;
}

CPPROF__FIRST_STEP void
cpprof__own_threads_learn(void)
{
    had_rseq = has_rseq();
}

/* A filter of the program may refuse by now what a thread needs. glibc, from
 * 2.35 on, ends the process where a thread may not register what the main
 * thread has. Where libc may not block signals, it opens them in the caller
 * afterwards, and one that waits comes. */
static bool
may_create(void)
{
    uint64_t none = 0;

    return (!had_rseq || has_rseq()) &&
           !cpprof__syscall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&none, 0,
                            sizeof none, 0, 0);
}

/* Not of threads that are started again: signals are blocked meanwhile. */
static void
note_program_mask(void)
{
    sigset_t program;
    uint64_t mask;

    if (self.is_own)
        return;
    pthread_sigmask(SIG_SETMASK, NULL, &program);
    memcpy(&mask, &program, sizeof mask);
    store_relaxed(&program_mask, mask);
}

CPPROF__FIRST_STEP static int
create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
       void *arg)
{
    sigset_t saved;
    int failed;

    if (!may_create())
        return EPERM;
    cpprof__block_signals(&saved);
    store_relaxed(&pid, (int32_t)getpid());
    cpprof__own_list_expect();
    failed = cpprof__real_pthread_create(thread, attr, start, arg);
    if (failed)
        cpprof__own_list_expect_no_more();
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return failed;
}

/* The folder has two links and one for each thread. */
static bool
is_only_thread(void)
{
    struct stat tasks;

    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink == 3;
}

/* While a thread of the program is in execve() the kernel makes no other one
 * (EAGAIN; copy_fs() of its fork.c). That call fails, or ends this thread. A
 * process of one thread has reached a limit, and does not wait. */
static int
start(struct cpprof__own_thread *t)
{
    pthread_attr_t attr;
    pthread_t thread; /* musl stores it when t may have been freed */
    uint64_t pause_ns;
    int failed;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, CPPROF__OWN_STACK);
    t->is_joined = false;
    failed = create(&thread, &attr, run, t);
    for (pause_ns = TRY_NS;
         failed == EAGAIN && pause_ns < TRY_NS << TRIES && !is_only_thread();
         pause_ns *= 2) {
        cpprof__sleep_ns(pause_ns);
        failed = create(&thread, &attr, run, t);
    }
    pthread_attr_destroy(&attr);
    return failed;
}

/* Every thread that has not run before is started here. */
CPPROF__FIRST_STEP static int
start_new(struct cpprof__own_thread *t)
{
    bool waits = !self.is_own && !cpprof__own_lock_is_mine(&change);
    int failed;

    if (!cpprof__has_room_for_stacks((cpprof__own_threads() + 1) *
                                     CPPROF__OWN_STACK))
        return ENOMEM;
    note_program_mask();
    if (t->flags & CPPROF__OWN_TABLE && !cpprof__keeper_enter())
        t->flags &= ~(unsigned)CPPROF__OWN_TABLE;
    t->is_over = 0;
    t->is_alone = false;
    if (waits)
        cpprof__own_lock_take(&change);
    failed = start(t);
    if (waits)
        cpprof__own_lock_give(&change);
    if (failed)
        leave_keeper(t->flags);
    return failed;
}

int
cpprof__own_thread_start(struct cpprof__own_thread *t)
{
    CPPROF__UNCANCELLED;

    return start_new(t);
}

CPPROF__FIRST_STEP int
cpprof__own_thread_start_detached(const struct cpprof__own_thread *what)
{
    struct cpprof__own_thread *t = new_detached();
    int failed;
    CPPROF__UNCANCELLED;

    if (!t)
        return ENOMEM;
    *t = *what;
    t->is_detached = true;
    failed = start_new(t);
    if (failed)
        free_detached(t);
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
        left = cpprof__timespec_of(until_ns - now < CPPROF__OWN_LOOK_NS
                                       ? until_ns - now
                                       : CPPROF__OWN_LOOK_NS);
        syscall(SYS_futex, &t->is_over, FUTEX_WAIT, 0, &left, NULL, 0);
    }
    if (t->is_joined) /* by a pause, after which it could not begin again */
        return true;
    /* exit() may be running on it, and may be waiting for the caller. */
    if (t->is_alone)
        cpprof__real_pthread_detach(t->thread);
    else
        cpprof__real_pthread_join(t->thread, NULL);
    return true;
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

bool
cpprof__own_thread_run_new(void (*f)(void *arg), void *arg, unsigned flags)
{
    struct own_task own_task = {f, arg};
    struct cpprof__own_thread thread = {
        .name = "cpprof",
        .run = run_own_task,
        .arg = &own_task,
        .flags = flags,
    };
    CPPROF__UNCANCELLED;

    return !cpprof__own_thread_start(&thread) &&
           cpprof__own_thread_join(&thread, UINT64_MAX);
}

void
cpprof__own_thread_run(void (*f)(void *arg), void *arg)
{
    CPPROF__UNCANCELLED;

    if (self.is_own || !cpprof__own_thread_run_new(f, arg, 0))
        f(arg);
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
    cpprof__free(arg);
    result = foreign.start(foreign.arg);
    cpprof__own_thread_end();
    return result;
}

int
cpprof__own_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*start_routine)(void *arg), void *arg)
{
    struct foreign *foreign = cpprof__malloc(sizeof *foreign);
    int failed;

    if (!foreign)
        return EAGAIN;
    *foreign = (struct foreign){start_routine, arg};
    note_program_mask();
    failed = create(thread, attr, run_foreign, foreign);
    if (failed)
        cpprof__free(foreign);
    return failed;
}

/* ---- the last thread -------------------------------------------------- */

bool
cpprof__own_threads_are_alone(void)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);
    int status;

    if (now - self.looked_ns < CPPROF__OWN_LOOK_NS)
        return false;
    self.looked_ns = now;
    if (cpprof__proc_main_has_ended(&status)) {
        self.is_alone = cpprof__own_list_is_all();
        if (!self.is_alone)
            store_relaxed(&outlived_main, true);
    }
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

bool
cpprof__own_thread_has_table(void)
{
    return self.has_table;
}

bool
cpprof__own_keeper_run(void (*f)(void))
{
    return self.thread && self.thread->flags & CPPROF__OWN_TABLE &&
           cpprof__keeper_run(f);
}

/* ---- pausing ---------------------------------------------------------- */

/* Tunables: so much of a second, and so often in it, a program may wait for
 * ours to end and to begin again. One that does so all the time would do
 * nothing else, or not go on at all if a timer of its own has it do so. A few
 * may take as long where the machine is busy. */
#define PAUSES_NS  200000000u
#define PAUSES_MAX 64
#define TOO_MANY                                                               \
    "cpprof: the program changes its user or namespaces all the time: no "     \
    "samples are taken in it any more\n"

static struct {
    uint64_t second_ns; /* when it began */
    uint64_t spent_ns;  /* in it, */
    unsigned n;         /* by so many */
    uint64_t began_ns;  /* the pause */
} pauses;

/* Does the program have us pause too often to begin again? */
static bool
are_too_many(void)
{
    uint64_t now = cpprof__now_ns(CLOCK_MONOTONIC);

    if (now - pauses.second_ns > CPPROF__NS_PER_S) {
        pauses.second_ns = now;
        pauses.spent_ns = 0;
        pauses.n = 0;
    }
    pauses.spent_ns += now - pauses.began_ns;
    return ++pauses.n > PAUSES_MAX && pauses.spent_ns > PAUSES_NS;
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
            cpprof__real_pthread_join(t->thread, NULL);
        t->is_joined = true;
    }
    cpprof__own_lock_give(&pause_lock);
}

bool
cpprof__own_threads_are_parents(void)
{
    struct stat tasks;

    return load_relaxed(&pid) != (int32_t)getpid() &&
           stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

bool
cpprof__own_threads_are_anothers(void)
{
    return load_relaxed(&pid) !=
               (int32_t)cpprof__syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) &&
           !cpprof__own_list_was_empty();
}

bool
cpprof__own_threads_pause(void (*wake)(void))
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + PAUSE_NS;

    if (self.is_own || cpprof__own_lock_is_mine(&change) ||
        cpprof__own_list_is_empty() ||
        load_relaxed(&pid) != (int32_t)getpid()) /* after vfork() */
        return false;
    cpprof__own_lock_take(&change);
    pauses.began_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    set_pausing(1);
    while (cpprof__own_list_wake() && cpprof__now_ns(CLOCK_MONOTONIC) < until) {
        if (wake)
            wake();
        cpprof__sleep_ns(PAUSE_LOOK_NS);
    }
    join_paused();
    return true;
}

/* It cannot be started again, so it is over. */
static void
give_up(struct cpprof__own_thread *t)
{
    if (cpprof__keeper_is(t))
        cpprof__keeper_is_gone();
    leave_keeper(t->flags);
    t->is_joined = true;
    if (t->is_detached)
        free_detached(t);
    else
        tell_over(t);
}

void
cpprof__own_threads_resume(void)
{
    struct cpprof__own_thread *t, *next;
    bool is_over = are_too_many();
    void (*lost)(void) = NULL;

    if (is_over)
        cpprof__own_thread_say(TOO_MANY, sizeof TOO_MANY - 1);
    set_pausing(0);
    join_paused();
    for (t = paused, paused = NULL; t; t = next) {
        next = t->next_paused;
        if (!is_over && !start(t))
            continue;
        lost = t->lost ? t->lost : lost;
        give_up(t);
    }
    cpprof__own_lock_give(&change);
    if (lost)
        lost();
}

CPPROF__FIRST_STEP void
cpprof__own_threads_in_child(void)
{
    cpprof__own_list_in_child();
    cpprof__keeper_in_child();
    memset(&self, 0, sizeof self);
    outlived_main = has_detached = false;
    own_tasks_ns = 0; /* its clock begins anew */
    is_pausing = 0;
    paused = NULL;
    cpprof__own_lock_in_child(&pause_lock);
    cpprof__own_lock_in_child(&change);
}
