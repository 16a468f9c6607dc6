/* SPDX-License-Identifier: MIT */
/*
 * The handler of the sampling signal.
 *
 * It finds out who sent the signal (a timer or perf event of ours, a question
 * of a thread dump, the tick of an interpreter, or libc), passes libc's own on,
 * and for a tick walks the stack and pushes a record into the ring. The weight
 * of a record is the number of periods of the thread's CPU clock that it stands
 * for.
 *
 * Protocol with the session: `ring` is set last and cleared first; the handler
 * counts itself in before it reads `ring` and out when it has finished, and
 * whoever clears it waits for that count. Protocol with the scan: `delivered`
 * counts ticks that came, `precharged_ticks` those that the scan has charged
 * without a sample; the handler subtracts them from its weight.
 *
 * A thread of a bare clone() may have no thread-local storage of libc's, or
 * another: its tick is counted and nothing else, without touching any.
 *
 * Invariants: everything here is async-signal-safe and keeps errno; a slot is
 * used by one handler at a time (`busy`); nothing thread-local, errno included,
 * is touched before the thread is known to be one of libc's.
 */
#include "collect/signal/sample/handler.h"

#include "arch/atomic.h"
#include "arch/regs.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/sample/alternate.h"
#include "collect/signal/sample/dump.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/sample/thread_pointer.h"
#include "collect/signal/tables/cost.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/signal/unwind/stack_view.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

void (*cpprof__libc_handler)(int signo, siginfo_t *info, void *context);
void (*cpprof__script_tick)(uint64_t value);

/* Which slot has this event, if its thread is one that is known by its tid? The
 * kernel is asked for a tid only otherwise: a filter of the program may kill
 * for that. */
static struct cpprof__thread *
known_thread(const struct cpprof__thread_self *self, int32_t fd)
{
    int32_t tid = load_relaxed(&self->tid);
    struct cpprof__thread *t =
        fd >= 0 && tid ? cpprof__thread_of_tid(tid) : NULL;

    return t && load_relaxed(&t->perf_fd) == fd ? t : NULL;
}

/* The slot of the running thread. It is found by tid once and then remembered.
 * It is looked up again if the event does not belong to that slot, because a
 * bare clone() shares its creator's thread-local storage. fd is -1 when no
 * descriptor is known. A thread that ends forgets its slot first and the
 * generation then, and events tick until the drainer comes. */
static struct cpprof__thread *
running_thread(uint32_t generation, int32_t fd)
{
    struct cpprof__thread_self *self = &cpprof__self;

    if (!self->thread || self->generation != generation ||
        (fd >= 0 && load_relaxed(&self->thread->perf_fd) != fd)) {
        self->thread = known_thread(self, fd);
        if (!self->thread)
            self->thread = cpprof__thread_of_tid((int32_t)syscall(SYS_gettid));
        self->generation = self->thread ? generation : 0;
    }
    return self->thread;
}

static struct cpprof__thread *
sampled_thread(enum cpprof__signal_source source, const siginfo_t *info,
               const void *context, uint32_t generation)
{
    uint64_t value = (uint64_t)info->si_value.sival_ptr;
    struct cpprof__thread *t;

    if (source != CPPROF__FROM_TIMER && !context)
        t = cpprof__thread_of_tid(
            (int32_t)cpprof__syscall(SYS_gettid, 0, 0, 0, 0, 0, 0));
    else if (source != CPPROF__FROM_TIMER)
        t = running_thread(generation,
                           source == CPPROF__FROM_PERF ? info->si_fd : -1);
    else if ((uint16_t)(value >> 24) == (uint16_t)generation)
        t = cpprof__thread_at(value & 0xffffff);
    else
        return NULL;
    if (!t || load_acquire(&t->generation) != generation)
        return NULL;
    return t;
}

/* A perf event stops when it has sent what it was granted: signals of this
 * number are all kept. The drainer grants more (threads/engine_perf.c), and is
 * woken for that before all is used. */
static void
use_perf_credit(struct cpprof__ring *ring, struct cpprof__thread *t,
                const siginfo_t *info)
{
    uint32_t n = load_relaxed(&t->perf_signals) + 1;

    if (info->si_fd != load_relaxed(&t->perf_fd))
        return;
    store_relaxed(&t->perf_signals, n);
    if (n >= load_relaxed(&t->perf_wakes_at))
        cpprof__ring_wake(ring);
}

/* Was the thread in the kernel? A system call that begins again is told by the
 * instruction that is next. */
static bool
was_in_kernel(struct cpprof__thread *t, const void *context)
{
    const uint8_t *code = (const uint8_t *)t->view.window;
    struct cpprof__regs regs;

    if (cpprof__came_by_fault(context))
        return true;
    cpprof__regs_from_ucontext(&regs, context);
    t->view.lo = t->view.hi = 0;
    return cpprof__stack_fetch(&t->view, regs.pc - CPPROF__SYSCALL_BYTES,
                               2 * CPPROF__SYSCALL_BYTES) &&
           (cpprof__is_syscall(code) ||
            cpprof__is_syscall(code + CPPROF__SYSCALL_BYTES));
}

/*
 * How many ticks this signal stands for. A POSIX timer counts what it could
 * not deliver. A perf event does not, so it is all that is due by the clock
 * that both follow.
 *
 * Perf events tick in user mode only. What the thread used in the kernel is due
 * when it is back, and would be the code's that comes then. So a timer that
 * finds the thread in the kernel stands for its own periods, due or not, and
 * the next samples for less: on average that takes from this code what it had
 * too much.
 */
static uint64_t
ticks(enum cpprof__signal_source source, const siginfo_t *info,
      struct cpprof__thread *t, const void *context)
{
    uint64_t n = 1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0);
    uint64_t due, had = load_relaxed(&t->delivered);

    if (source == CPPROF__FROM_TIMER &&
        !load_relaxed(&cpprof__sampler.uses_perf))
        return n + swap_acq_rel(&t->missed, 0u);
    if (source == CPPROF__FROM_TIMER && load_relaxed(&t->perf_fd) >= 0 &&
        context && was_in_kernel(t, context))
        return n;
    due = cpprof__ticks_due(t, cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID),
                            cpprof__sampler.period_ns);
    return due > had ? due - had : 0;
}

/* Ticks that the scan charged already are not charged twice. */
static uint64_t
without_precharged(struct cpprof__thread *t, uint64_t weight)
{
    uint64_t precharged_ticks = load_relaxed(&t->precharged_ticks);
    uint64_t used = precharged_ticks < weight ? precharged_ticks : weight;

    if (used)
        add_relaxed(&t->precharged_ticks, -used);
    return weight - used;
}

/* The main thread's stack has grown since it was learnt: all from the stack
 * pointer up is mapped, if the stack pointer itself is. */
static void
grow_stack(struct cpprof__thread *t, uintptr_t sp)
{
    uintptr_t end = load_relaxed(&t->stack_end);

    if (sp < load_relaxed(&t->stack_lo) && end && sp >= end &&
        cpprof__stack_fetch(&t->view, sp & ~(uintptr_t)7, 8))
        store_relaxed(&t->stack_lo, sp & ~(uintptr_t)0xfff);
}

/* pcs has room for the frame that says how the stack ends. */
static void
push_stack(struct cpprof__ring *ring, const struct cpprof__ring_head *head,
           uintptr_t *pcs, size_t n, enum cpprof__unwind_end end)
{
    cpprof__sampler_push(ring, head, pcs, cpprof__mark_end(pcs, n, end));
}

/* Receives a deferred stack. Its labels are the present ones, because the set
 * of that time may be gone. */
static void
take_mixed(uint64_t generation, uint64_t weight, uintptr_t *pcs, size_t n,
           enum cpprof__unwind_end end, bool is_own)
{
    struct cpprof__ring_head head = {.weight = cpprof__sampler_weight(weight)};
    struct cpprof__ring *ring;

    if (is_own) {
        head.tid = (int32_t)cpprof__syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
        head.labels = cpprof__sampler_labels();
    }
    __atomic_add_fetch(&cpprof__sampler.n_inside, 1, __ATOMIC_SEQ_CST);
    ring = __atomic_load_n(&cpprof__sampler.ring, __ATOMIC_SEQ_CST);
    if (ring && load_relaxed(&cpprof__sampler.generation) == generation)
        push_stack(ring, &head, pcs, n, end);
    __atomic_sub_fetch(&cpprof__sampler.n_inside, 1, __ATOMIC_SEQ_CST);
}

/* Merge the script's frames into the stack, if the thread runs one; true: the
 * stack comes to take_mixed() later. */
static bool
is_deferred(struct cpprof__thread *t, uint64_t weight, size_t *n,
            enum cpprof__unwind_end *end)
{
    static const struct cpprof__deferred_sink sink = {take_mixed};
    const struct cpprof__interp_ops *interp = load_acquire(&cpprof__interp_ops);
    struct cpprof__deferred_stack stack = {
        &sink, load_relaxed(&cpprof__sampler.generation), weight, t->pcs, 0, 0};

    if (!interp || interp->merge(t->pcs, n, CPPROF__MAX_DEPTH, end, true) !=
                       CPPROF__INTERP_LATER)
        return false;
    stack.n = *n;
    stack.end = *end;
    return interp->defer(&stack);
}

static void
sample(struct cpprof__ring *ring, struct cpprof__thread *t, uint64_t weight,
       const void *context)
{
    /* The slot may be given up meanwhile: its tid is 0 then. */
    const struct cpprof__ring_head head = {cpprof__sampler_weight(weight), 0,
                                           load_relaxed(&t->tid),
                                           cpprof__sampler_labels()};
    struct cpprof__regs regs;
    enum cpprof__unwind_end end;
    uintptr_t lo, hi, page;
    bool has_hook;
    size_t n;

    cpprof__regs_from_ucontext(&regs, context);
    t->view.lo = t->view.hi = 0;
    t->view.window_n = 0;
    t->view.window_at = 0;
    grow_stack(t, regs.sp);
    lo = load_relaxed(&t->stack_lo);
    hi = load_relaxed(&t->stack_hi);
    if (regs.sp >= lo && regs.sp < hi) {
        page = regs.sp & ~(uintptr_t)0xfff;
        t->view.lo = page > lo ? page : lo;
        t->view.hi = hi;
    }
    store_relaxed(&t->seen_sp, regs.sp);
    store_relaxed(&t->seen_tp, cpprof__thread_self());
    n = cpprof__unwind(&regs, &t->view, t->pcs, cpprof__sampler.max_depth,
                       &end);
    if (n)
        n = 1 + cpprof__drop_hooks(t->pcs + 1, n - 1, 0, &has_hook);
    if (!is_deferred(t, weight, &n, &end))
        push_stack(ring, &head, t->pcs, n, end);
}

static void
push_made_up(struct cpprof__ring *ring, const struct cpprof__thread *t,
             uint64_t weight, enum cpprof__own_frame why)
{
    const uintptr_t pcs[2] = {why, t->start};
    const struct cpprof__ring_head head = {
        cpprof__sampler_weight(weight), 0, load_relaxed(&t->tid),
        why == CPPROF__FRAME_NO_LIBC ? 0 : cpprof__sampler_labels()};

    cpprof__sampler_push(ring, &head, pcs, t->start ? 2 : 1);
}

/* context: NULL for a thread without libc's storage. */
static void
tick(enum cpprof__signal_source source, const siginfo_t *info,
     const void *context)
{
    struct cpprof__ring *ring = load_acquire(&cpprof__sampler.ring);
    enum cpprof__own_frame why_not =
        context ? cpprof__signal_no_walk(&context) : CPPROF__FRAME_NO_LIBC;
    struct cpprof__thread *t;
    uint64_t weight;

    if (!ring)
        return;
    if (!why_not)
        cpprof__alternate_note(&((const ucontext_t *)context)->uc_stack);
    t = sampled_thread(source, info, context,
                       load_relaxed(&cpprof__sampler.generation));
    if (!t)
        return;
    if (source == CPPROF__FROM_PERF)
        use_perf_credit(ring, t, info);
    /* Threads made by a bare clone() may share a slot for a moment. */
    if (swap_acq_rel(&t->busy, 1)) {
        add_relaxed(&ring->lost, 1);
        return;
    }
    weight = ticks(source, info, t, why_not ? NULL : context);
    store_relaxed(&t->delivered, load_relaxed(&t->delivered) + weight);
    weight = without_precharged(t, weight);
    if (weight && why_not)
        push_made_up(ring, t, weight, why_not);
    else if (weight)
        sample(ring, t, weight, context);
    store_release(&t->busy, 0);
}

static void
pass_on(int signo, siginfo_t *info, void *context)
{
    void (*libc_handler)(int, siginfo_t *, void *) =
        load_acquire(&cpprof__libc_handler);

    if (libc_handler)
        libc_handler(signo, info, context);
}

static void
count_tick(enum cpprof__signal_source source, const siginfo_t *info,
           const void *context)
{
    __atomic_add_fetch(&cpprof__sampler.n_inside, 1, __ATOMIC_SEQ_CST);
    tick(source, info, context);
    __atomic_sub_fetch(&cpprof__sampler.n_inside, 1, __ATOMIC_SEQ_CST);
}

static void
answer(enum cpprof__signal_source source, const siginfo_t *info,
       const void *context)
{
    uint64_t begin = cpprof__cost_begin(CPPROF__COST_TICKS);
    void (*script_tick)(uint64_t value);
    int saved_errno = errno;

    if (source == CPPROF__FROM_QUESTION) {
        cpprof__dump_answer(info, context);
    } else if (source == CPPROF__FROM_SCRIPT) {
        script_tick = load_acquire(&cpprof__script_tick);
        if (script_tick)
            script_tick((uint64_t)info->si_value.sival_ptr);
    } else {
        count_tick(source, info, context);
    }
    cpprof__cost_end(CPPROF__COST_TICKS, begin);
    errno = saved_errno;
}

static void
answer_without_libc(enum cpprof__signal_source source, const siginfo_t *info)
{
    if (source == CPPROF__FROM_QUESTION)
        cpprof__dump_answer(info, NULL);
    else if (source != CPPROF__FROM_SCRIPT)
        count_tick(source, info, NULL);
}

CPPROF__ALIGNS_STACK void
cpprof__on_signal(int signo, siginfo_t *info, void *context)
{
    enum cpprof__signal_source source = cpprof__signal_source(info);

    if (source == CPPROF__FROM_OTHERS) {
        pass_on(signo, info, context);
        return;
    }
    cpprof__bear_unaligned(context);
    if (cpprof__thread_pointer_is_libcs())
        answer(source, info, context);
    else
        answer_without_libc(source, info);
}
