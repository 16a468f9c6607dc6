/* SPDX-License-Identifier: MIT */
/*
 * Timers on the CPU clocks of threads that run interpreters; timers.h has the
 * idea.
 *
 * Protocol of a slot. It is taken by compare-and-swap on is_taken and stays in
 * the table for ever. `epoch` and `serial` make a signal valid: the handler
 * looks at both, and a signal that was pending when its timer was deleted
 * carries an old serial and does nothing. `id` is exchanged for 0 by whoever
 * deletes the kernel's timer, so that it is deleted once. `busy` is set by the
 * handler around its use of `words`; `all.n_inside` counts handlers, and the
 * end of a session clears the epoch first and then waits, not for ever, for
 * that count to become 0.
 *
 * Invariants: words of a slot belong to the handler while busy, else to who
 * holds the slot; no memory that a handler may reach is given back while
 * n_inside is not 0.
 */
#include "vm/profile/timers.h"

#include "arch/clock.h"
#include "arch/mix.h"
#include "arch/place.h"
#include "collect/labels/labels.h"
#include "collect/runtime/proc.h"
#include "collect/signal/sample/handler.h"
#include "collect/signal/sample/ring.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/tables/scripts.h"
#include "collect/threads/action.h"
#include "collect/threads/engine.h"
#include "vm/profile/queue.h"
#include "vm/stacks/interp_frames.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads at a time; others are asked by ticks. */
#define SLOTS 16384u

/* Words of the ring, touched as they are used: 1 MiB, some 1000 stacks of 128
 * frames until the writer comes. */
#define RING_WORDS (128u << 10)

/* Tunable: how late a signal may be before the thread counts as blocking it.
 * The kernel checks a CPU timer only at its own tick. More finds such threads
 * later; less suspects threads that work for less than a tick at a time. */
#define LATE_NS 20000000u

struct cpprof__vm_timer {
    uint32_t is_taken;
    uint32_t epoch;  /* that it ticks in; 0: no signal is answered */
    uint32_t serial; /* signals of another are stale */
    int32_t id;      /* the kernel's, and one; 0: none */
    int32_t tid;
    const struct cpprof_vm *vm; /* to be peeked at; NULL: who is entered comes
                                 * to a safepoint */
    uint64_t counted_ns; /* reading of the thread's CPU clock: what was before
                          * is in samples, or a signal came then */
    uint32_t is_silent;  /* the thread blocks the signal */
    uint32_t busy;       /* a handler has what is below */
    uint32_t n_words;    /* of the last stack; 0: none yet */
    bool is_truncated;
    uintptr_t *words; /* the value, and the stack; kept with the slot */
};

static struct cpprof__vm_timer *slots; /* PLACES; NULL: not yet */
static uint32_t n_slots;               /* that were ever in use */

static struct {
    uint32_t epoch; /* 0: no timers are to be */
    uint64_t period_ns;
    uint32_t max_depth;
    struct cpprof__ring *ring;
    struct cpprof__labels_reader labels_reader;
    uint64_t lost_ns;
    uint64_t phase;
    uint32_t n_inside; /* handlers */
    uint32_t n_looks;
} all;

/* The calling thread's slot in a session, or the note that it could get none.
 */
static __thread struct {
    struct cpprof__vm_timer *timer;
    uint32_t epoch;
    int32_t tid;
} own;

static uint64_t
now_of(const struct cpprof__vm_timer *timer)
{
    return cpprof__now_ns(CPPROF__THREAD_CPU_CLOCK(timer->tid));
}

/* ---- slots ------------------------------------------------------------- */

static struct cpprof__vm_timer *
take_slot(void)
{
    uint32_t i, n = load_relaxed(&n_slots);

    for (i = 0; slots && i < SLOTS; i++) {
        uint32_t nobody = 0;

        if (load_relaxed(&slots[i].is_taken) ||
            !cas_acq_rel(&slots[i].is_taken, &nobody, 1u))
            continue;
        while (n < i + 1 && !cas_acq_rel(&n_slots, &n, i + 1))
            continue;
        return &slots[i];
    }
    return NULL;
}

static void
give_slot(struct cpprof__vm_timer *timer)
{
    store_relaxed(&timer->epoch, 0u);
    store_release(&timer->is_taken, 0u);
}

/* Delete the timer, unless another thread has taken its number and does so. */
static void
drop(struct cpprof__vm_timer *timer)
{
    int32_t id = swap_acq_rel(&timer->id, 0);

    if (!id)
        return;
    syscall(SYS_timer_delete, id - 1);
    give_slot(timer);
}

/* ---- making them ------------------------------------------------------- */

/* CPU time until the first signal. Phases are spread evenly, as those of
 * collect/threads/threads.c. */
static uint64_t
draw_phase(void)
{
    uint64_t phase = add_relaxed(&all.phase, CPPROF__GOLDEN) + CPPROF__GOLDEN;

    return 1 + (uint64_t)((unsigned __int128)phase * all.period_ns >> 64);
}

static uint64_t
value_of(const struct cpprof__vm_timer *timer)
{
    return CPPROF__SCRIPT_MAGIC << 40 |
           (uint64_t)(uint16_t)timer->serial << 24 | (uint64_t)(timer - slots);
}

/* Have the kernel start it; false: it cannot. */
static bool
set(struct cpprof__vm_timer *timer)
{
    int32_t id;

    if (timer->vm && !timer->words) {
        void *block = (void *)syscall(
            SYS_mmap,
            cpprof__table_place(CPPROF__RING_MAX_PCS * sizeof *timer->words),
            CPPROF__RING_MAX_PCS * sizeof *timer->words, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (block == MAP_FAILED)
            return false;
        timer->words = block;
    }
    if (cpprof__timer_start(timer->tid, value_of(timer),
                            timer->counted_ns + draw_phase(), all.period_ns,
                            &id))
        return false;
    __atomic_store_n(&timer->id, id + 1, __ATOMIC_SEQ_CST);
    return true;
}

/* A timer that runs. NULL: there can be none, or the session is over. */
static struct cpprof__vm_timer *
make(int32_t tid, const struct cpprof_vm *vm, uint32_t epoch)
{
    struct cpprof__vm_timer *timer;
    int saved = errno;

    if (__atomic_load_n(&all.epoch, __ATOMIC_SEQ_CST) != epoch ||
        !(timer = take_slot()))
        return NULL;
    timer->tid = tid;
    timer->vm = vm;
    store_relaxed(&timer->n_words, 0u);
    store_relaxed(&timer->is_silent, 0u);
    store_relaxed(&timer->counted_ns, now_of(timer));
    store_relaxed(&timer->serial, timer->serial + 1);
    store_release(&timer->epoch, epoch);
    if (!set(timer)) {
        give_slot(timer);
        timer = NULL;
    } else if (__atomic_load_n(&all.epoch, __ATOMIC_SEQ_CST) != epoch) {
        drop(timer); /* or the end of the session has */
        timer = NULL;
    }
    errno = saved;
    return timer;
}

static bool
is_of(const struct cpprof__vm_timer *timer, uint32_t epoch)
{
    return timer && load_relaxed(&timer->epoch) == epoch;
}

/* The timer of the calling thread; NULL: none. again: try once more if it could
 * not be made before. */
static struct cpprof__vm_timer *
own_timer(uint32_t epoch, bool again)
{
    if (own.epoch == epoch && (is_of(own.timer, epoch) || !again))
        return own.timer;
    own.tid = (int32_t)syscall(SYS_gettid);
    own.timer = make(own.tid, NULL, epoch);
    own.epoch = epoch;
    return own.timer;
}

static void
note(struct cpprof__vm_thread *t, struct cpprof__vm_timer *timer,
     uint32_t epoch)
{
    store_relaxed(&t->timer, timer);
    store_release(&t->timed_epoch, epoch);
}

/* The timer of t; NULL: none. */
static struct cpprof__vm_timer *
timer_of(const struct cpprof__vm_thread *t, uint32_t epoch)
{
    struct cpprof__vm_timer *timer;

    if (load_acquire(&t->timed_epoch) != epoch)
        return NULL;
    timer = load_relaxed(&t->timer);
    return is_of(timer, epoch) ? timer : NULL;
}

static void
begin_timer(struct cpprof__vm_thread *t, uint32_t epoch, bool again)
{
    note(t, own_timer(epoch, again), epoch);
    store_relaxed(&t->entered_in, own.tid);
}

void
cpprof__vm_timer_begin(struct cpprof__vm_thread *t, uint32_t epoch)
{
    begin_timer(t, epoch, false);
}

/* ---- threads that are peeked at ---------------------------------------- */

static bool
can_peek(const struct cpprof__vm_thread *t)
{
    const struct cpprof_vm_ops *ops = &t->vm->ops;

    return t->tid && ops->peek && ops->flags & CPPROF_VM_SIGNAL_SAFE &&
           cpprof__scripts.head;
}

/* Take the CPU time since the last reading of the clock; now is a reading. */
static uint64_t
take_time(struct cpprof__vm_timer *timer, uint64_t now)
{
    uint64_t before = load_relaxed(&timer->counted_ns);

    while (before < now)
        if (cas_acq_rel(&timer->counted_ns, &before, now))
            return now - before;
    return 0;
}

bool
cpprof__vm_timer_counts(struct cpprof__vm_thread *t, uint32_t epoch,
                        uint64_t *missed_ns)
{
    struct cpprof__vm_timer *timer = timer_of(t, epoch);

    *missed_ns = 0;
    if (!can_peek(t)) {
        if (cpprof__vm_entered() == &t->public && !timer)
            begin_timer(t, epoch, true);
        return false;
    }
    if (!timer) {
        timer = make(t->tid, t->vm, epoch);
        note(t, timer, epoch);
    }
    if (timer && load_relaxed(&timer->is_silent))
        *missed_ns = take_time(timer, now_of(timer));
    return timer;
}

/* A timer with .vm belongs to one thread only, so it is still t's. */
void
cpprof__vm_timer_end(struct cpprof__vm_thread *t)
{
    uint32_t epoch = load_relaxed(&all.epoch);
    struct cpprof__vm_timer *timer = epoch ? timer_of(t, epoch) : NULL;

    if (timer && timer->vm)
        drop(timer);
}

bool
cpprof__vm_is_timed(const struct cpprof__vm_thread *t)
{
    uint32_t epoch = load_relaxed(&all.epoch);
    const struct cpprof__vm_timer *timer = epoch ? timer_of(t, epoch) : NULL;

    return timer && !load_relaxed(&timer->is_silent);
}

/* ---- the handler ------------------------------------------------------- */

static void
push(struct cpprof__vm_timer *timer, uint64_t value_ns, uintptr_t labels)
{
    const struct cpprof__ring_head head = {1, timer->is_truncated, 0, labels};
    struct cpprof__ring *ring = load_acquire(&all.ring);

    if (!ring)
        return;
    timer->words[0] = value_ns;
    if (!cpprof__ring_push(ring, &head, timer->words, timer->n_words + 1))
        add_relaxed(&all.lost_ns, value_ns);
    if (cpprof__ring_is_filling(ring))
        cpprof__vm_wake_writer();
}

struct peeking {
    struct cpprof__vm_timer *timer;
    uint32_t n;
};

static bool
add_word(void *ctx, const struct cpprof_vm_peek *frame)
{
    struct peeking *p = ctx;

    p->timer->is_truncated = p->n == all.max_depth;
    if (p->timer->is_truncated)
        return false;
    p->timer->words[1 + p->n++] = cpprof__vm_word_of(p->timer->vm, frame);
    return true;
}

/* Without frames the thread runs no script now, or is just entering one. Its
 * time goes to the next sample. */
static void
take_stack(struct cpprof__vm_timer *timer)
{
    struct peeking p = {timer, 0};
    uint64_t value_ns;

    timer->is_truncated = false;
    timer->vm->ops.peek(NULL, add_word, &p);
    if (!p.n)
        return;
    store_relaxed(&timer->n_words, p.n);
    value_ns = take_time(timer, cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID));
    if (value_ns)
        push(timer, value_ns, (uintptr_t)cpprof__self.labels);
}

static void
ask_own(struct cpprof__vm_timer *timer)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(cpprof__vm_entered());
    const struct cpprof_vm *only = load_relaxed(&cpprof__vm_only);

    store_relaxed(&timer->counted_ns, cpprof__now_ns(CLOCK_THREAD_CPUTIME_ID));
    if (!t || (only && only != t->vm))
        return;
    store_relaxed(&t->public.due, 1u);
    if (t->vm->ops.interrupt)
        t->vm->ops.interrupt(t->thread);
}

static void
on_tick(uint64_t value)
{
    uint32_t index = value & 0xffffff, epoch;
    struct cpprof__vm_timer *timer = &slots[index < SLOTS ? index : 0];

    __atomic_add_fetch(&all.n_inside, 1, __ATOMIC_SEQ_CST);
    epoch = __atomic_load_n(&all.epoch, __ATOMIC_SEQ_CST);
    if (epoch && load_acquire(&timer->epoch) == epoch &&
        (uint16_t)(value >> 24) == (uint16_t)load_relaxed(&timer->serial) &&
        !swap_acq_rel(&timer->busy, 1u)) {
        store_relaxed(&timer->is_silent, 0u);
        if (timer->vm)
            take_stack(timer);
        else
            ask_own(timer);
        store_release(&timer->busy, 0u);
    }
    __atomic_sub_fetch(&all.n_inside, 1, __ATOMIC_SEQ_CST);
}

/* ---- looking after them ------------------------------------------------ */

/* The clock of a thread that is gone stands at 0. */
static void
look_after(struct cpprof__vm_timer *timer)
{
    uint64_t counted = load_relaxed(&timer->counted_ns);
    uint64_t now = now_of(timer);

    if (!now && !timer->vm)
        drop(timer);
    else if (now > counted + 2 * all.period_ns + LATE_NS)
        store_relaxed(&timer->is_silent,
                      cpprof__proc_blocks(timer->tid, CPPROF__SIGNAL));
}

void
cpprof__vm_timers_look_after(void)
{
    uint32_t epoch = load_relaxed(&all.epoch), i, n = load_acquire(&n_slots);

    if (!epoch)
        return;
    for (i = 0; i < n; i++)
        if (load_acquire(&slots[i].epoch) == epoch &&
            load_relaxed(&slots[i].id))
            look_after(&slots[i]);
    if (++all.n_looks % 128 == 0)
        cpprof__action_check();
}

/* ---- the session ------------------------------------------------------- */

static struct cpprof__ring *
make_ring(void)
{
    void *block =
        mmap((void *)cpprof__table_place(cpprof__ring_bytes(RING_WORDS)),
             cpprof__ring_bytes(RING_WORDS), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (block == MAP_FAILED)
        return NULL;
    cpprof__ring_init(block, RING_WORDS);
    return block;
}

void
cpprof__vm_timers_begin(uint64_t period_ns, uint32_t max_depth)
{
    store_release(&cpprof__script_tick, on_tick);
    if (!cpprof__reserve_once((void **)&slots, SLOTS * sizeof *slots) ||
        cpprof__action_install() || !(all.ring = make_ring()))
        return;
    all.period_ns = period_ns;
    all.max_depth = max_depth;
    all.lost_ns = 0;
    all.phase ^= cpprof__now_ns(CLOCK_MONOTONIC);
    cpprof__labels_reader_begin(&all.labels_reader);
}

void
cpprof__vm_timers_open(uint32_t epoch)
{
    if (all.ring)
        __atomic_store_n(&all.epoch, epoch, __ATOMIC_SEQ_CST);
}

/* Time since a thread's last sample is charged to that sample's stack. It is
 * less than a period if the signal came. */
static uint64_t
end_one(struct cpprof__vm_timer *timer)
{
    uint64_t rest = timer->vm ? take_time(timer, now_of(timer)) : 0;
    bool has_stack = load_relaxed(&timer->n_words);

    if (rest && has_stack && !swap_acq_rel(&timer->busy, 1u)) {
        push(timer, rest, 0);
        store_release(&timer->busy, 0u);
        rest = 0;
    }
    drop(timer);
    return rest;
}

static void
wait_until_quiet(void)
{
    int i;

    for (i = 0; i < 10000; i++) {
        if (!__atomic_load_n(&all.n_inside, __ATOMIC_SEQ_CST))
            return;
        cpprof__sleep_ns(100000);
    }
}

uint64_t
cpprof__vm_timers_end(void)
{
    uint32_t epoch = all.epoch, i, n;
    uint64_t rest = 0;

    if (!epoch)
        return 0;
    __atomic_store_n(&all.epoch, 0u, __ATOMIC_SEQ_CST);
    wait_until_quiet();
    n = load_acquire(&n_slots);
    for (i = 0; i < n; i++)
        if (load_acquire(&slots[i].epoch) == epoch &&
            __atomic_load_n(&slots[i].id, __ATOMIC_SEQ_CST))
            rest += end_one(&slots[i]);
    return rest;
}

void
cpprof__vm_timers_drain(struct cpprof__vm_output *output)
{
    static struct cpprof__ring_record record CPPROF__LARGE;
    uint64_t clock, head;

    if (!all.ring)
        return;
    clock = cpprof__labels_clock();
    head = load_acquire(&all.ring->head);
    while (cpprof__ring_pop(all.ring, &record)) {
        const struct cpprof__vm_word_stack stack = {
            .value_ns = record.pcs[0],
            .words = record.pcs + 1,
            .n = record.n_pcs - 1u,
            .is_truncated = record.head.flags,
            .labels = (const void *)(uintptr_t)record.head.labels,
        };

        cpprof__vm_output_stack(output, &stack);
    }
    if (load_relaxed(&all.ring->tail) >= head)
        cpprof__labels_reader_passed(&all.labels_reader, clock);
    cpprof__vm_output_own(output, CPPROF__FRAME_LOST,
                          swap_acq_rel(&all.lost_ns, (uint64_t)0));
}

/* A handler that did not finish may still use the memory: then it is not freed.
 */
void
cpprof__vm_timers_free(void)
{
    struct cpprof__ring *ring = all.ring;

    all.ring = NULL;
    if (!ring)
        return;
    cpprof__labels_reader_end(&all.labels_reader);
    if (!__atomic_load_n(&all.n_inside, __ATOMIC_SEQ_CST))
        munmap(ring, cpprof__ring_bytes(RING_WORDS));
}

/* The kernel gives it none of the parent's timers. */
CPPROF__FIRST_STEP void
cpprof__vm_timers_fork_child(void)
{
    uint32_t i, n = n_slots;

    for (i = 0; i < n; i++) {
        slots[i].id = 0;
        slots[i].busy = 0;
        give_slot(&slots[i]);
    }
    if (all.ring)
        munmap(all.ring, cpprof__ring_bytes(RING_WORDS));
    memset(&all, 0, sizeof all);
}
