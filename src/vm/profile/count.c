/* SPDX-License-Identifier: MIT */
/*
 * Measures how long each stack ran. Each thread of an interpreter has one
 * clock. It has been running since begun_ns, or stands still (0); span_ns is
 * time from before that is not charged to a stack yet.
 *
 * In mode SPAN it runs during spans; whole quanta are charged where a span
 * ends. In modes TICK and CPU it runs while the thread is entered, and all of
 * it is charged at the safepoint that follows a tick.
 *
 * A session may start while threads are running. Threads that are entered count
 * from its start (base_ns): if the first event of such a thread is the end of a
 * span or a safepoint, that gets all the time since. Nothing is known of other
 * threads, so they count from their first event.
 */
#include "vm/profile/count.h"

#include "arch/place.h"
#include "vm/profile/sample.h"
#include "vm/profile/timers.h"
#include "vm/stacks/interp_frames.h"

struct cpprof_vm_running cpprof__vm_running CPPROF__AT_START;
const struct cpprof_vm_running *const cpprof_vm_running = &cpprof__vm_running;
uint32_t cpprof__vm_active CPPROF__AT_START;
uint32_t cpprof__vm_mode;
uint64_t cpprof__vm_quantum_ns;
const struct cpprof_vm *cpprof__vm_only;

/* ---- what others may read --------------------------------------------- */

static void
write_clock(struct cpprof__vm_thread *t, struct cpprof__vm_clock written)
{
    uint32_t next = t->turn + 1;
    struct cpprof__vm_clock *clock = &t->clocks[next % 2];

    /* Each store follows those of the previous turn, so a reader that sees one
     * of them sees that whole turn. */
    store_release(&clock->epoch, written.epoch);
    store_release(&clock->begun_ns, written.begun_ns);
    store_release(&clock->span_ns, written.span_ns);
    store_release(&t->turn, next);
}

static void
set_clock(struct cpprof__vm_thread *t, uint64_t begun_ns, uint64_t span_ns)
{
    write_clock(t, (struct cpprof__vm_clock){cpprof__vm_clock_of(t)->epoch,
                                             begun_ns, span_ns});
}

static void
begin_epoch(struct cpprof__vm_thread *t, uint32_t epoch, uint64_t begun_ns)
{
    write_clock(t, (struct cpprof__vm_clock){epoch, begun_ns, 0});
    t->is_paused = false;
    t->native = (uintptr_t)&cpprof__self;
}

void
cpprof__vm_charged(struct cpprof__vm_thread *t, uint64_t value_ns)
{
    const struct cpprof__vm_clock *clock = cpprof__vm_clock_of(t);

    set_clock(t, clock->begun_ns, clock->span_ns - value_ns);
}

/* Read again only if t has moved on meanwhile. It may have lost its processor
 * in the middle of a change, and that may last too long to wait for. */
static struct cpprof__vm_clock
read_clock(const struct cpprof__vm_thread *t)
{
    struct cpprof__vm_clock seen;
    uint32_t turn;

    do {
        turn = load_acquire(&t->turn);
        seen.epoch = load_acquire(&t->clocks[turn % 2].epoch);
        seen.begun_ns = load_acquire(&t->clocks[turn % 2].begun_ns);
        seen.span_ns = load_acquire(&t->clocks[turn % 2].span_ns);
    } while (load_relaxed(&t->turn) != turn);
    return seen;
}

/* ---- the clock -------------------------------------------------------- */

/* Is there nothing to be counted for t? NULL; a callback that its sample has
 * called; or another interpreter than the one that is profiled. */
static bool
is_out(const struct cpprof__vm_thread *t)
{
    const struct cpprof_vm *only = load_relaxed(&cpprof__vm_only);

    return !t || t->is_busy || (only && only != t->vm);
}

/* The clock of the mode: CPU time of the calling native thread, or wall time.
 */
static uint64_t
now_ns(void)
{
    return cpprof__now_ns(load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_CPU
                              ? CLOCK_THREAD_CPUTIME_ID
                              : CLOCK_MONOTONIC);
}

/* The clock of the native thread that t runs in; 0: that has ended. */
static uint64_t
now_of(const struct cpprof__vm_thread *t)
{
    if (!t->tid || load_relaxed(&cpprof__vm_mode) != CPPROF_VM_MODE_CPU)
        return now_ns();
    return cpprof__now_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
}

/* When the time of t begins, which has had no event in the session yet. */
static uint64_t
base_of(const struct cpprof__vm_thread *t, uint32_t epoch)
{
    if (!load_relaxed(&t->is_entered) || load_relaxed(&t->base_epoch) != epoch)
        return 0;
    return load_relaxed(&t->base_ns);
}

/* Begin the time of t in the session, unless it has begun. */
static inline void
catch_up(struct cpprof__vm_thread *t, uint32_t epoch)
{
    if (cpprof__vm_clock_of(t)->epoch != epoch)
        begin_epoch(t, epoch, base_of(t, epoch));
}

/* What has run by that clock and is not charged. */
static inline uint64_t
run_until(const struct cpprof__vm_clock *clock, uint64_t now)
{
    if (!clock->begun_ns || now < clock->begun_ns)
        return clock->span_ns;
    return clock->span_ns + (now - clock->begun_ns);
}

static inline uint64_t
span_until(const struct cpprof__vm_thread *t, uint64_t now)
{
    return run_until(cpprof__vm_clock_of(t), now);
}

/* Time that an ended thread left for the next that is charged. */
static inline uint64_t
take_orphan(struct cpprof_vm *vm)
{
    if (!load_relaxed(&vm->orphan_ns))
        return 0;
    return swap_acq_rel(&vm->orphan_ns, (uint64_t)0);
}

/* ---- spans ------------------------------------------------------------ */

/* A span that still runs was abandoned by an error. Its time continues in this
 * one. */
void
cpprof_vm_span_begin_counted(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    uint32_t epoch = load_acquire(&cpprof__vm_running.spans);
    uint64_t now;

    if (!epoch || is_out(t))
        return;
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    if (cpprof__vm_clock_of(t)->epoch != epoch)
        begin_epoch(t, epoch, now);
    else
        set_clock(t, now, span_until(t, now));
}

static inline void
charge_quanta(struct cpprof__vm_thread *t, uint32_t epoch)
{
    uint64_t quantum = load_relaxed(&cpprof__vm_quantum_ns);
    uint64_t span_ns = cpprof__vm_clock_of(t)->span_ns;

    if (span_ns >= quantum)
        cpprof__vm_sample(t, epoch, span_ns - span_ns % quantum);
}

void
cpprof_vm_span_end_counted(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    uint32_t epoch = load_acquire(&cpprof__vm_running.spans);

    if (!epoch || is_out(t))
        return;
    catch_up(t, epoch);
    if (!cpprof__vm_clock_of(t)->begun_ns)
        return;
    set_clock(t, 0,
              span_until(t, cpprof__now_ns(CLOCK_MONOTONIC)) +
                  take_orphan(t->vm));
    charge_quanta(t, epoch);
}

/* An end and a begin by one reading of the clock, so that the time of the
 * caller in between counts. */
void
cpprof_vm_span_next_counted(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    uint32_t epoch = load_acquire(&cpprof__vm_running.spans);
    uint64_t now;

    if (!epoch || is_out(t))
        return;
    catch_up(t, epoch);
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    set_clock(t, now, span_until(t, now) + take_orphan(t->vm));
    charge_quanta(t, epoch);
}

/* ---- safepoints ------------------------------------------------------- */

/* A thread that is never entered may come from another native thread every
 * time. The CPU time of that one is not known. */
static void
charge_all(struct cpprof__vm_thread *t, uint32_t epoch)
{
    uint64_t now = now_of(t), span_ns;
    bool is_moved = load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_CPU &&
                    !t->tid && t->native != (uintptr_t)&cpprof__self;

    t->native = (uintptr_t)&cpprof__self;
    span_ns = is_moved ? cpprof__vm_clock_of(t)->span_ns : span_until(t, now);
    if (span_ns)
        span_ns += take_orphan(t->vm);
    set_clock(t, now, span_ns);
    if (span_ns)
        cpprof__vm_sample(t, epoch, span_ns);
}

/* In mode CPU: has the timer of t counted, or is t not due? A thread that comes
 * to the safepoints of all also comes to those of threads that were not asked.
 */
static bool
is_counted(struct cpprof__vm_thread *t, uint32_t epoch, bool was_due)
{
    uint64_t missed_ns;

    if (!cpprof__vm_timer_counts(t, epoch, &missed_ns))
        return t->tid && !was_due && cpprof__vm_clock_of(t)->epoch == epoch;
    if (missed_ns) {
        catch_up(t, epoch);
        set_clock(t, 0, cpprof__vm_clock_of(t)->span_ns + missed_ns);
        cpprof__vm_sample(t, epoch, missed_ns);
    }
    return true;
}

void
cpprof_vm_thread_safepoint(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    uint32_t epoch = load_acquire(&cpprof__vm_active);
    bool was_due;

    if (!t)
        return;
    was_due = swap_acq_rel(&public->due, 0u);
    store_relaxed(&t->n_asked, 0u);
    cpprof__vm_flush(t);
    if (!epoch || is_out(t) ||
        load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_SPAN)
        return;
    if (load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_CPU &&
        is_counted(t, epoch, was_due))
        return;
    catch_up(t, epoch);
    charge_all(t, epoch);
}

/* ---- resume and yield ------------------------------------------------- */

/* If another native thread entered t and has not left it, t has run since, and
 * its clock goes on. A CPU clock does not: it is another for each thread. */
static void
resume_clock(struct cpprof__vm_thread *t, uint64_t now)
{
    const struct cpprof__vm_clock *clock = cpprof__vm_clock_of(t);
    uint32_t mode = load_relaxed(&cpprof__vm_mode);
    bool runs = mode != CPPROF_VM_MODE_SPAN || t->is_paused;
    bool runs_elsewhere = mode != CPPROF_VM_MODE_CPU &&
                          load_relaxed(&t->is_entered) && clock->begun_ns;

    t->is_paused = false;
    t->native = (uintptr_t)&cpprof__self;
    store_relaxed(&t->n_asked, 0u);
    if (runs && !runs_elsewhere)
        set_clock(t, now, clock->span_ns);
}

void
cpprof__vm_switch(struct cpprof__vm_thread *from, struct cpprof__vm_thread *to)
{
    uint32_t epoch = load_acquire(&cpprof__vm_active);
    uint64_t now;

    if (!epoch || (is_out(from) && is_out(to)))
        return;
    now = now_ns();
    if (!is_out(from)) {
        catch_up(from, epoch);
        if (cpprof__vm_clock_of(from)->begun_ns) {
            set_clock(from, 0, span_until(from, now));
            from->is_paused = true;
        }
    }
    if (is_out(to))
        return;
    if (cpprof__vm_clock_of(to)->epoch != epoch)
        begin_epoch(to, epoch, 0);
    resume_clock(to, now);
    if (load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_CPU)
        cpprof__vm_timer_begin(to, epoch);
}

/* ---- interpreters that poll native threads (CPPROF_VM_FINDS) ----------- */

/* Tunable: after so many unanswered ticks it is no accident that a thread does
 * not answer. */
#define UNANSWERED 3

static uint64_t unknown_ns; /* time of which nobody can say whose it was */

uint64_t
cpprof__vm_take_unknown(void)
{
    return swap_acq_rel(&unknown_ns, (uint64_t)0);
}

static bool
goes_by_ticks(uint32_t epoch)
{
    return epoch && load_relaxed(&cpprof__vm_mode) != CPPROF_VM_MODE_SPAN;
}

void
cpprof_vm_thread_found(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *to = cpprof__vm_inside(public);
    struct cpprof__vm_thread *from = cpprof__vm_inside(cpprof__vm_entered());
    uint32_t epoch = load_acquire(&cpprof__vm_active);
    uint64_t rest = 0;

    if (from == to)
        return;
    if (goes_by_ticks(epoch) && !is_out(from) && !is_out(to) &&
        from->vm == to->vm) {
        catch_up(from, epoch);
        rest = span_until(from, now_ns());
        set_clock(from, 0, 0);
    }
    cpprof_vm_thread_enter(public);
    if (rest)
        set_clock(to, cpprof__vm_clock_of(to)->begun_ns,
                  cpprof__vm_clock_of(to)->span_ns + rest);
}

void
cpprof_vm_thread_leave_out(struct cpprof_vm_thread *public, uint64_t until_ns)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    uint32_t epoch = load_acquire(&cpprof__vm_active);
    uint64_t begun, now;

    if (!goes_by_ticks(epoch) || is_out(t) ||
        (until_ns && load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_CPU))
        return;
    catch_up(t, epoch);
    begun = cpprof__vm_clock_of(t)->begun_ns;
    if (!begun || (until_ns && until_ns < begun))
        return;
    store_relaxed(&t->n_asked, 0u);
    now = now_of(t);
    set_clock(t, until_ns && until_ns < now ? until_ns : now, 0);
}

void
cpprof_vm_thread_no_answer(struct cpprof_vm_thread *public)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(public);
    uint32_t epoch = load_acquire(&cpprof__vm_active);
    uint64_t now, span_ns;

    if (!epoch || is_out(t) ||
        load_relaxed(&cpprof__vm_mode) != CPPROF_VM_MODE_TICK)
        return;
    catch_up(t, epoch);
    now = now_ns();
    span_ns = span_until(t, now);
    if (load_relaxed(&t->n_asked) < UNANSWERED ||
        span_ns < UNANSWERED * load_relaxed(&cpprof__vm_quantum_ns))
        return;
    store_relaxed(&t->n_asked, 0u);
    add_relaxed(&unknown_ns, span_ns);
    set_clock(t, cpprof__vm_clock_of(t)->begun_ns ? now : 0, 0);
}

/* ---- the end ---------------------------------------------------------- */

void
cpprof__vm_charge_own(uint32_t epoch)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(cpprof__vm_entered());

    if (is_out(t))
        return;
    if (load_relaxed(&cpprof__vm_mode) == CPPROF_VM_MODE_SPAN) {
        cpprof_vm_span_end_counted(&t->public);
        return;
    }
    catch_up(t, epoch);
    if (t->vm->ops.flags & CPPROF_VM_FINDS)
        cpprof_vm_thread_no_answer(&t->public);
    charge_all(t, epoch);
}

/* The CPU clock of another thread is not to be had, and what a thread that is
 * never entered did since its last safepoint is not known. */
uint64_t
cpprof__vm_rest(const struct cpprof__vm_thread *t, uint32_t epoch, uint64_t now)
{
    struct cpprof__vm_clock seen = read_clock(t);
    uint32_t mode = load_relaxed(&cpprof__vm_mode);

    if (mode == CPPROF_VM_MODE_CPU)
        return seen.epoch == epoch ? seen.span_ns : 0;
    if (seen.epoch != epoch) {
        seen.begun_ns = base_of(t, epoch);
        seen.span_ns = 0;
    } else if (mode == CPPROF_VM_MODE_TICK && !load_relaxed(&t->was_entered)) {
        seen.begun_ns = 0;
    }
    return run_until(&seen, now);
}
