/* SPDX-License-Identifier: MIT */
/*
 * Stops threads from a helper: a process that shares our memory, made by a bare
 * clone() without a signal at its end. It uses system calls only, because its
 * thread-local storage is that of the thread that made it.
 *
 * The helper writes .stop when all stand; the caller runs its function and
 * writes .stop; each waits for the other on that futex, for a limited time. If
 * the helper ends in any way, the kernel detaches all threads.
 */
#include "collect/leak/stop.h"

#include "arch/clock.h"
#include "arch/kernel.h"
#include "arch/regs.h"
#include "collect/leak/looks.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/proc.h"
#include "collect/threads/tasks.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Tunables: a thread leaves a call that must not be cut short, or comes to a
 * stop, in this time; the function that runs meanwhile takes no longer. */
#define LEAVE_NS NS(2)
#define STOP_NS  (NS(1) / 5)
#define RUN_NS   NS(10)
#define LOOK_NS  200000

/* Tunables: so many looks find all threads where they bear a stop, so far apart
 * that one which does something again and again is seen at it. */
#define LOOKS      20
#define BETWEEN_NS 1000000
#define NS(s)      ((uint64_t)(s)*CPPROF__NS_PER_S)

#define STACK_BYTES (256u << 10)

/* ---- which threads there are ------------------------------------------ */

static void
add_thread(struct cpprof__leak_shared *shared, int32_t tid, uintptr_t sp)
{
    if (shared->n_threads < CPPROF__LEAK_THREADS)
        shared->threads[shared->n_threads++] =
            (struct cpprof__leak_thread){tid, sp, 0};
}

/* The calling thread stands first. It is ours: nothing on its stack, up to its
 * control block, is the program's, but what was there before. */
static void
add_self(struct cpprof__leak_shared *shared)
{
    uintptr_t tp = cpprof__thread_self();

    shared->n_threads = 0;
    add_thread(shared, (int32_t)syscall(SYS_gettid), tp);
    shared->threads[0].tp = tp;
}

void
cpprof__leak_look_at_threads(struct cpprof__leak_shared *shared)
{
    int folder = cpprof__tasks_folder();
    struct cpprof__folder tasks;
    bool is_open = cpprof__proc_threads(&tasks);
    const char *name;

    shared->knows_threads = false;
    add_self(shared);
    while (is_open && (name = cpprof__folder_next(&tasks))) {
        int32_t tid = atoi(name);
        struct cpprof__task_call call = {.sp = 0};

        if (tid <= 0 || tid == shared->threads[0].tid)
            continue;
        if (cpprof__task_call(folder, tid, &call) != CPPROF__TASK_SLEEPS)
            call.sp = 0;
        add_thread(shared, tid, call.sp);
    }
    if (is_open)
        cpprof__folder_close(&tasks);
    if (folder >= 0)
        close(folder);
}

#ifdef __x86_64__

struct helper {
    struct cpprof__leak_shared *shared;
    struct cpprof__looks looks;
    int32_t pid;
    /* As they were seized; .signals are to be given back to them. */
    uint32_t n;
    int32_t tids[CPPROF__LEAK_THREADS];
    int32_t signals[CPPROF__LEAK_THREADS];
    bool is_stopped[CPPROF__LEAK_THREADS];
};

static long
call(long number, long a, long b, long c, long d)
{
    return cpprof__syscall(number, a, b, c, d, 0, 0);
}

/* Of the calls that bear a stop, those that it ends with EINTR, and that can be
 * begun again. */
static bool
begins_again(long number)
{
    switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_rt_sigtimedwait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_accept:
    case SYS_accept4:
    case SYS_read:
    case SYS_recvfrom:
    case SYS_recvmsg:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
        return true;
    default:
        return false;
    }
}

/* ---- the helper ------------------------------------------------------- */

static uint64_t
now_ns(void)
{
    struct timespec t = {0, 0};

    call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0);
    return cpprof__ns_of(t);
}

static void
nap(long ns)
{
    const struct timespec t = {0, ns};

    call(SYS_nanosleep, (long)&t, 0, 0, 0);
}

static bool
give_up(struct helper *h, uint32_t why, int32_t tid, long failed)
{
    h->shared->late_tid = tid;
    h->shared->sys = (int32_t)-failed;
    store_release(&h->shared->stop, why);
    return false;
}

static bool
is_seized(const struct helper *h, int32_t tid)
{
    uint32_t i;

    for (i = 0; i < h->n; i++)
        if (h->tids[i] == tid)
            return true;
    return false;
}

/* ---- all of them ------------------------------------------------------- */

/* Attached to, and asked to stop; a thread that is gone is none. */
static bool
seize(struct helper *h, int32_t tid)
{
    long failed;

    if (h->n == CPPROF__LEAK_THREADS - 1)
        return give_up(h, CPPROF__STOP_TOO_MANY, tid, 0);
    if (!cpprof__look_bears_stop(&h->looks, tid))
        return give_up(h, CPPROF__STOP_LATE, tid, 0);
    failed = call(SYS_ptrace, PTRACE_SEIZE, tid, 0, 0);
    if (failed == -ESRCH ||
        (failed == -EPERM && cpprof__look_has_ended(&h->looks, tid)))
        return true;
    if (failed)
        return give_up(h, CPPROF__STOP_REFUSED, tid, failed);
    h->tids[h->n] = tid;
    h->signals[h->n] = 0;
    h->is_stopped[h->n++] = false;
    call(SYS_ptrace, PTRACE_INTERRUPT, tid, 0, 0);
    return true;
}

/* f for each thread in the folder, until it returns false. */
static bool
for_threads(struct helper *h, bool (*f)(struct helper *h, int32_t tid))
{
    const int32_t caller = h->shared->threads[0].tid;
    char buffer[4096] __attribute__((aligned(8)));
    long n, at;

    call(SYS_lseek, h->looks.tasks, 0, SEEK_SET, 0);
    while ((n = call(SYS_getdents64, h->looks.tasks, (long)buffer,
                     sizeof buffer, 0)) > 0)
        for (at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(buffer + at);
            int32_t tid = cpprof__look_number(entry->d_name);

            at += entry->d_reclen;
            if (tid > 0 && tid != caller && !is_seized(h, tid) && !f(h, tid))
                return false;
        }
    return true;
}

static void
add_word(struct helper *h, uint64_t word)
{
    if (h->shared->n_words < CPPROF__LEAK_WORDS)
        h->shared->words[h->shared->n_words++] = word;
    else
        give_up(h, CPPROF__STOP_TOO_MANY, 0, 0);
}

/* What makes a word more than a small number, whatever its tag. */
#define ADDRESS_BITS UINT64_C(0x7fffffff0000)

/* Vector registers: compilers spill to them, and the kernel keeps them over a
 * call that is not made by a function of libc. */
static void
take_vectors(struct helper *h, int32_t tid)
{
    uint64_t state[512];
    struct iovec all = {state, sizeof state};
    size_t i;

    if (call(SYS_ptrace, PTRACE_GETREGSET, tid, NT_X86_XSTATE, (long)&all))
        return;
    for (i = 0; i < all.iov_len / 8; i++)
        if (state[i] & ADDRESS_BITS)
            add_word(h, state[i]);
}

/* What a call would have told that the stop has woken: the kernel begins it
 * again, unless a signal with a handler is there as well. */
#define BEGIN_AGAIN (-514) /* ERESTARTNOHAND */

static bool
take_registers(struct helper *h, int32_t tid)
{
    struct user_regs_struct regs;
    struct iovec all = {&regs, sizeof regs};
    const uint64_t *words = (const uint64_t *)&regs;
    size_t i;

    if (call(SYS_ptrace, PTRACE_GETREGSET, tid, NT_PRSTATUS, (long)&all))
        return false;
    for (i = 0; i < sizeof regs / 8; i++)
        add_word(h, words[i]);
    add_thread(h->shared, tid, regs.rsp);
    h->shared->threads[h->shared->n_threads - 1].tp = regs.fs_base;
    take_vectors(h, tid);
    if ((long)regs.rax == -EINTR && begins_again((long)regs.orig_rax)) {
        regs.rax = (uint64_t)BEGIN_AGAIN;
        call(SYS_ptrace, PTRACE_SETREGSET, tid, NT_PRSTATUS, (long)&all);
    }
    return true;
}

/* Wait until one stands, or is gone. A signal that it was about to take is kept
 * for it. */
static bool
wait_for_stop(struct helper *h, uint32_t i, uint64_t until)
{
    int32_t tid = h->tids[i];
    int status;
    long got;

    while ((got = call(SYS_wait4, tid, (long)&status, __WALL | WNOHANG, 0)) ==
           0) {
        if (now_ns() > until)
            return false;
        nap(LOOK_NS);
    }
    if (got < 0 || !WIFSTOPPED(status))
        return true;
    h->is_stopped[i] = true;
    if (status >> 16 != PTRACE_EVENT_STOP)
        h->signals[i] = WSTOPSIG(status);
    return take_registers(h, tid);
}

/* Threads may make others until the last one stands, and the list may lack some
 * while others end. */
static bool
stop_all(struct helper *h)
{
    uint32_t done = 0, quiet = 0;

    while (quiet < 2) {
        uint64_t until;

        if (!for_threads(h, seize))
            return false;
        quiet = done < h->n ? 0 : quiet + 1;
        for (until = now_ns() + STOP_NS; done < h->n; done++)
            if (!wait_for_stop(h, done, until))
                return give_up(h, CPPROF__STOP_LATE, h->tids[done], 0);
    }
    return load_acquire(&h->shared->stop) == CPPROF__STOP_UNDER_WAY;
}

static void
let_go(struct helper *h)
{
    uint64_t until = now_ns() + STOP_NS;
    uint32_t i;

    for (i = 0; i < h->n; i++) {
        if (!h->is_stopped[i])
            wait_for_stop(h, i, until);
        if (h->is_stopped[i])
            call(SYS_ptrace, PTRACE_DETACH, h->tids[i], 0, h->signals[i]);
    }
}

static bool
check_call(struct helper *h, int32_t tid)
{
    return cpprof__look_at(&h->looks, tid) ||
           give_up(h, CPPROF__STOP_LATE, tid, 0);
}

/* A look at all threads; true: each of them bears a stop. */
static bool
check_all(struct helper *h, uint32_t *n_good)
{
    cpprof__looks_begin(&h->looks, !*n_good);
    h->shared->stop = CPPROF__STOP_UNDER_WAY;
    *n_good = for_threads(h, check_call) ? *n_good + 1 : 0;
    if (h->looks.unsure_tid)
        h->shared->late_tid = h->looks.unsure_tid;
    return *n_good >= LOOKS && !h->looks.unsure_tid;
}

/*
 * All stand, or none. A thread that writes more than there is room for sleeps
 * in that call most of the time, and runs for moments: to stop it in one of
 * these would cut the call short just as well, because it sleeps again before
 * the stop comes. So all threads are looked at several times, and each time all
 * of them must bear a stop.
 */
static bool
try_to_stop(struct helper *h)
{
    uint64_t until = now_ns() + LEAVE_NS;
    uint32_t n_words = h->shared->n_words, n_good = 0;

    for (;;) {
        if (check_all(h, &n_good)) {
            h->shared->stopped_ns = now_ns();
            if (stop_all(h))
                return true;
            let_go(h);
            h->n = 0;
            h->shared->n_threads = 1;
            h->shared->n_words = n_words;
            n_good = 0;
        }
        if (h->shared->stop != CPPROF__STOP_LATE &&
            h->shared->stop != CPPROF__STOP_UNDER_WAY)
            return false;
        if (now_ns() > until)
            return give_up(h, CPPROF__STOP_LATE, h->shared->late_tid, 0);
        nap(BETWEEN_NS);
    }
}

static void
wait_while(struct cpprof__leak_shared *shared, uint32_t value, uint64_t ns)
{
    uint64_t until = now_ns() + ns;

    while (load_acquire(&shared->stop) == value && now_ns() < until) {
        const struct timespec t = {0, 10000000};

        call(SYS_futex, (long)&shared->stop, FUTEX_WAIT, value, (long)&t);
    }
}

static int
help(void *arg)
{
    struct helper *h = arg;
    struct cpprof__leak_shared *shared = h->shared;
    uint32_t stand = CPPROF__STOP_ALL_STAND;

    call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
    call(SYS_prctl, PR_SET_NAME, (long)"cpprof-stop", 0, 0);
    if (call(SYS_getppid, 0, 0, 0, 0) != h->pid)
        call(SYS_exit_group, 1, 0, 0, 0);
    h->looks.pidfd = (int)call(SYS_pidfd_open, h->pid, 0, 0, 0);
    if (try_to_stop(h)) {
        store_release(&shared->stop, CPPROF__STOP_ALL_STAND);
        call(SYS_futex, (long)&shared->stop, FUTEX_WAKE, 1, 0);
        wait_while(shared, CPPROF__STOP_ALL_STAND, RUN_NS);
        cas_acq_rel(&shared->stop, &stand, CPPROF__STOP_LATE);
        let_go(h);
        shared->went_on_ns = now_ns();
    }
    call(SYS_exit_group, 0, 0, 0, 0);
    return 0;
}

/* ---- the caller ------------------------------------------------------- */

/* Until the helper has said something or has ended; true: it has ended. */
static bool
wait_for_helper(struct cpprof__leak_shared *shared, int pid, bool to_its_end)
{
    int status;
    long got;

    for (;;) {
        if (!to_its_end &&
            load_acquire(&shared->stop) == CPPROF__STOP_ALL_STAND)
            return false;
        got = call(SYS_wait4, pid, (long)&status, __WALL | WNOHANG, 0);
        if (got && got != -EINTR)
            return true;
        if (to_its_end)
            nap(LOOK_NS);
        else
            wait_while(shared, load_acquire(&shared->stop), STOP_NS / 100);
    }
}

bool
cpprof__leak_stopped(struct cpprof__leak_shared *shared,
                     void (*f)(struct cpprof__leak_shared *shared, void *arg),
                     void *arg)
{
    const size_t n = STACK_BYTES + sizeof(struct helper);
    uint32_t stand = CPPROF__STOP_ALL_STAND;
    bool done = false;
    struct helper *h;
    char *memory;
    int pid;

    shared->stop = CPPROF__STOP_REFUSED;
    memory = mmap(NULL, n, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared->sys = memory == MAP_FAILED ? ENOMEM : 0;
    if (shared->sys)
        return false;
    shared->knows_threads = true;
    shared->not_ours[1] =
        (struct cpprof__leak_range){(uintptr_t)memory, (uintptr_t)memory + n};
    add_self(shared);
    h = (struct helper *)(memory + STACK_BYTES);
    h->shared = shared;
    h->pid = (int32_t)getpid();
    h->looks.tasks = cpprof__tasks_folder();
    pid = h->looks.tasks < 0
              ? -1
              : clone(help, memory + STACK_BYTES, CLONE_VM | CLONE_UNTRACED, h);
    shared->sys = pid < 0 ? errno : 0;
    if (h->looks.tasks >= 0)
        close(h->looks.tasks);
    if (pid >= 0 && !wait_for_helper(shared, pid, false)) {
        f(shared, arg);
        done = cas_acq_rel(&shared->stop, &stand, CPPROF__STOP_SNAPPED);
        call(SYS_futex, (long)&shared->stop, FUTEX_WAKE, 1, 0);
        wait_for_helper(shared, pid, true);
    }
    munmap(memory, n);
    return done;
}

#else

bool
cpprof__leak_stopped(struct cpprof__leak_shared *shared,
                     void (*f)(struct cpprof__leak_shared *shared, void *arg),
                     void *arg)
{
    shared->sys = ENOSYS;
    shared->stop = CPPROF__STOP_REFUSED;
    return false;
}

#endif
