/* SPDX-License-Identifier: MIT */
/*
 * Reads the stack of a thread that is blocked in a system call, from another
 * thread.
 *
 * The kernel tells which call the thread is in, and its sp and pc. The walk
 * reads memory through the kernel. Afterwards the thread's CPU clock must be
 * the same as before; otherwise it ran meanwhile, and the result is thrown
 * away and tried again. Its thread-local variables (labels, waits) are read in
 * the same way, at the offset that they have in our own thread.
 *
 * Nothing of the program is read in place, the unwind information included:
 * the thread may be unloading a module that it was in. One walk at a time
 * (`lock`).
 */
#include "collect/dump/blocked_thread.h"

#include "arch/atomic.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/labels/labels.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/label_numbers.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/signal/unwind/stack_view.h"
#include "collect/signal/waits/waits.h"
#include "collect/threads/tasks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Tunable: a thread that wakes up while it is read is read again so often. */
#define TRIES 4

/* Room for a walk. */
static struct cpprof__own_lock lock CPPROF__AT_START;
static struct scratch {
    struct cpprof__stack_view view;
    struct cpprof__regs regs;
    uintptr_t leaf; /* what the thread waits in, or 0 */
    bool has_hook;  /* was in the stack */
    uintptr_t pcs[CPPROF__MAX_DEPTH + 2];
} scratch CPPROF__LARGE;

static const struct cpprof__thread_self *main_self CPPROF__AT_START;

CPPROF__FIRST_STEP void
cpprof__blocked_thread_note_main(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);

    if (tid != getpid())
        return;
    cpprof__self.tid = tid;
    main_self = &cpprof__self;
}

CPPROF__FIRST_STEP void
cpprof__blocked_thread_in_child(void)
{
    cpprof__own_lock_in_child(&lock);
    if (scratch.view.memory) /* leaves the page alone that is the parent's */
        scratch.view.memory = 0;
    cpprof__blocked_thread_note_main();
}

const struct cpprof__thread_self *
cpprof__blocked_thread_self(int32_t tid,
                            const struct cpprof__creation_info *creation)
{
    if (creation && !creation->has_ended)
        return creation->self;
    return tid == getpid() ? main_self : NULL;
}

/* ---- sleeps that a signal ends ---------------------------------------- */

/* Calls on a socket with a timeout (SO_RCVTIMEO) are not restarted. */
static bool
has_timeout(uintptr_t fd)
{
    static const int options[] = {SO_RCVTIMEO, SO_SNDTIMEO};
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct timeval timeout = {0, 0};
        socklen_t size = sizeof timeout;

        if (!getsockopt((int)fd, SOL_SOCKET, options[i], &timeout, &size) &&
            (timeout.tv_sec || timeout.tv_usec))
            return true;
    }
    return false;
}

static bool
is_timed_futex(const struct cpprof__task_call *call)
{
    int operation = (int)call->args[1] & FUTEX_CMD_MASK;

    return call->args[3] &&
           (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
            operation == FUTEX_WAIT_REQUEUE_PI);
}

bool
cpprof__blocked_thread_ends_early(const struct cpprof__task_call *call)
{
    switch (call->number) {
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_pause:
#endif
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents:
#endif
#ifdef SYS_io_uring_enter
    case SYS_io_uring_enter:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv:
    case SYS_io_getevents:
        return true;
    case SYS_futex:
        return is_timed_futex(call);
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
        return has_timeout(call->args[0]);
    }
    return false;
}

/* ---- reading a thread ------------------------------------------------- */

/* Read memory of this process that may not be there. */
static bool
fetch(const void *from, void *to, size_t n)
{
    scratch.view.copies_only = true;
    if (!cpprof__stack_fetch(&scratch.view, (uintptr_t)from, n))
        return false;
    memcpy(to, scratch.view.window, n);
    return true;
}

static size_t
walk(int32_t tid, const struct cpprof__task_call *call, uint32_t depth,
     enum cpprof__unwind_end *end)
{
    static const uint8_t syscall_regs[6] = CPPROF__SYSCALL_REGS;
    const struct cpprof__interp_ops *interp = load_acquire(&cpprof__interp_ops);
    size_t n;
    unsigned i;

    memset(&scratch.regs, 0, sizeof scratch.regs);
    scratch.regs.pc = call->pc;
    scratch.regs.sp = call->sp;
    scratch.regs.fp = CPPROF__UNKNOWN;
#if CPPROF__REG_LINK >= 0
    scratch.regs.r[CPPROF__REG_LINK] = CPPROF__UNKNOWN;
#endif
    scratch.regs.known = 1ull << CPPROF__REG_SP | 1ull << CPPROF__REG_PC;
    for (i = 0; call->number >= 0 && i < 6; i++) {
        scratch.regs.r[syscall_regs[i]] = call->args[i];
        scratch.regs.known |= 1ull << syscall_regs[i];
    }
    scratch.view.lo = scratch.view.hi = 0;
    scratch.view.copies_only = true;
    if (depth > CPPROF__MAX_DEPTH)
        depth = CPPROF__MAX_DEPTH;
    n = cpprof__unwind(&scratch.regs, &scratch.view, scratch.pcs, depth, end);
    n = cpprof__drop_hooks(scratch.pcs, n, scratch.leaf, &scratch.has_hook);
    if (interp)
        interp->merge_blocked(tid, scratch.pcs, &n, CPPROF__MAX_DEPTH, end);
    return cpprof__mark_end(scratch.pcs, n, *end);
}

static bool
has_stood_still(int32_t tid, uint64_t cpu)
{
    return cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(tid)) == cpu;
}

/* The set, after what its maker has written to it can be seen here. */
static const struct cpprof__label_set *
seen_set(const void *labels)
{
    const struct cpprof__label_set *set = labels;

    (void)load_acquire(&set->refs);
    return set;
}

/* The number of the thread's label set; false: the thread ran meanwhile. A set
 * that is current after the reader has begun is not freed before the reader
 * ends. */
static bool
number_labels(const struct cpprof__thread_self *self, int32_t tid, uint64_t cpu,
              uint32_t *number)
{
    struct cpprof__labels_reader reader;
    bool stood_still;

    *number = 0;
    if (!self->labels)
        return has_stood_still(tid, cpu);
    cpprof__labels_reader_begin(&reader);
    stood_still = has_stood_still(tid, cpu);
    if (stood_still)
        *number = cpprof__label_set_number(load_acquire(&cpprof__dump_tree),
                                           seen_set(self->labels));
    cpprof__labels_reader_end(&reader);
    return stood_still;
}

/* The thread's copy of a thread-local variable, which is at `own` in the
 * calling thread. */
static const void *
other_of(const struct cpprof__thread_self *self, const void *own)
{
    const char *from = (const char *)&cpprof__self;

    /* Volatile: else the compiler subtracts in a way that no linker can relax.
     */
    __asm__("" : "+r"(from));
    return (const char *)self + ((const char *)own - from);
}

static bool
see_variables(int32_t tid, const struct cpprof__thread_self *self,
              struct cpprof__thread_self *its, struct cpprof__dump_wait *wait)
{
    const struct cpprof__wait_self *its_waits;
    struct cpprof__wait_self waits;
    struct cpprof__wait_now now;

    if (!fetch(self, its, sizeof *its) || its->tid != tid ||
        !fetch(other_of(self, &cpprof__wait_own), &its_waits,
               sizeof its_waits) ||
        (its_waits && !fetch(its_waits, &waits, sizeof waits)))
        return false;
    now = cpprof__wait_now(its_waits && waits.tid == tid ? &waits : NULL);
    *wait = (struct cpprof__dump_wait){.kind = now.kind & 0xff,
                                       .since_ns = now.start_ns};
    scratch.leaf = now.kind ? now.leaf : 0;
    return true;
}

/* A call in which a thread can be interrupted, and most of all sleep: one that
 * is in another may be stuck, which /proc tells. */
static bool
is_stuck(const struct cpprof__blocked_thread_who *who,
         const struct cpprof__task_call *call)
{
    struct cpprof__task task;

    if (call->number == SYS_futex || cpprof__blocked_thread_ends_early(call))
        return false;
    return cpprof__task_look(who->folder, who->tid, &task) && task.state &&
           strchr("DTtIP", task.state);
}

/* Read the stack and variables of a sleeping thread. False: it ran meanwhile.
 * Its labels are true as long as its clock stands still, so they come last. */
static bool
read_stack(enum cpprof__dump_user user,
           const struct cpprof__blocked_thread_who *who,
           const struct cpprof__task_call *call,
           struct cpprof__blocked_thread *out)
{
    struct cpprof__thread_self its = {.tid = 0};
    enum cpprof__unwind_end end;
    size_t n;

    scratch.leaf = 0;
    if (!who->self || !see_variables(who->tid, who->self, &its, &out->wait)) {
        memset(&its, 0, sizeof its);
        memset(&out->wait, 0, sizeof out->wait);
    }
    n = walk(who->tid, call, load_relaxed(&cpprof__dump_depth[user]), &end);
    if (!cpprof__wait_is_true(out->wait.kind, scratch.has_hook) &&
        end != CPPROF__UNWIND_BROKEN)
        out->wait.kind = CPPROF__WAITS_NOT;
    out->is_stuck = is_stuck(who, call);
    if (!number_labels(&its, who->tid, out->cpu_ns, &out->answer.labels))
        return false;
    out->answer.stack =
        cpprof__tree_add(load_acquire(&cpprof__dump_tree), scratch.pcs, n);
    return true;
}

/* Try once. *moved: the thread has run meanwhile, so the result is not true. */
static enum cpprof__blocked_thread_result
look(enum cpprof__dump_user user, const struct cpprof__blocked_thread_who *who,
     struct cpprof__blocked_thread *out, bool *moved)
{
    struct cpprof__task_call call;

    *moved = false;
    if (!has_stood_still(who->tid, out->cpu_ns))
        return CPPROF__BLOCKED_NOT; /* it runs */
    switch (cpprof__task_call(who->folder, who->tid, &call)) {
    case CPPROF__TASK_RUNS:
        *moved = !has_stood_still(who->tid, out->cpu_ns);
        return CPPROF__BLOCKED_NOT;
    case CPPROF__TASK_UNREADABLE:
        return CPPROF__BLOCKED_UNREADABLE;
    case CPPROF__TASK_SLEEPS:
        break;
    }
    *moved = !read_stack(user, who, &call, out);
    if (*moved)
        return CPPROF__BLOCKED_NOT;
    if (cpprof__stack_view_copies() || scratch.view.memory)
        return CPPROF__BLOCKED_READ;
    /* It was refused just now. */
    *moved = true;
    return CPPROF__BLOCKED_UNREADABLE;
}

/* Have something that copies; false: there is nothing. A child of the program
 * would keep a descriptor of our memory, so only a thread of ours has one. */
static bool
begin_copies(void)
{
    if (!cpprof__stack_view_copies() && !scratch.view.memory &&
        cpprof__own_thread_has_table())
        scratch.view.memory =
            1 + open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    return cpprof__stack_view_copies() || scratch.view.memory;
}

static void
end_copies(void)
{
    if (scratch.view.memory)
        close(scratch.view.memory - 1);
    scratch.view.memory = 0;
}

bool
cpprof__blocked_threads_want_table(void)
{
    const uint64_t word = 0;

    /* To know whether the kernel copies it has to be asked. */
    cpprof__own_lock_take(&lock);
    scratch.view.copies_only = true;
    cpprof__stack_fetch(&scratch.view, (uintptr_t)&word, sizeof word);
    cpprof__own_lock_give(&lock);
    return !cpprof__stack_view_copies() && !cpprof__own_thread_has_table();
}

enum cpprof__blocked_thread_result
cpprof__blocked_thread_read(enum cpprof__dump_user user,
                            const struct cpprof__blocked_thread_who *who,
                            struct cpprof__blocked_thread *out)
{
    enum cpprof__blocked_thread_result state = CPPROF__BLOCKED_NOT;
    bool moved = true;
    unsigned i;

    memset(out, 0, sizeof *out);
    cpprof__own_lock_take(&lock);
    for (i = 0; moved && i < TRIES; i++) {
        out->cpu_ns = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(who->tid));
        if (begin_copies()) {
            state = look(user, who, out, &moved);
        } else {
            state = CPPROF__BLOCKED_UNREADABLE;
            moved = false;
        }
    }
    end_copies();
    cpprof__own_lock_give(&lock);
    return moved ? CPPROF__BLOCKED_NOT : state;
}
