/* SPDX-License-Identifier: MIT */
/*
 * What happens around a wait: notes it for handlers, samples it when it ends,
 * and charges whoever gives a lock up.
 *
 * A thread has a small stack of waits in progress (cpprof__wait_own), because
 * a handler that interrupts a wait may wait itself. Only the thread writes it;
 * its own handlers and, while it sleeps, another thread read it. An entry that
 * was left by a jump or a cancellation is recognized later by the address of
 * its frame and removed.
 *
 * Invariants: nothing here allocates or locks; an entry is taken out of the
 * stack before it leaves the table of waiters, so that a handler in between
 * does not remove it twice.
 */
#include "collect/signal/waits/waits.h"

#include "arch/clock.h"
#include "arch/place.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/heap/heap_random.h"
#include "collect/signal/heap/hook_stack.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/stack_tree.h"
#include "collect/signal/waits/wait_buckets.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

/* Higher ones are as these: sums of 64 bits cannot overflow by one of them.
 * 2^40 ns are 18 minutes. */
#define BLOCK_RATE_MAX     ((int64_t)1 << 40)
#define MUTEX_FRACTION_MAX INT32_MAX

/* No wait was longer than 2^52 ns, 52 days; what says so is a broken clock. */
#define WAIT_MAX ((uint64_t)1 << 52)

#define ONE ((uint64_t)1 << CPPROF__WAIT_FRACTION_BITS)

uint32_t cpprof__waits_on CPPROF__AT_START;
void (*cpprof__waits_changed)(void) CPPROF__AT_START;

/* Read by every wait, so in one cache line. */
static struct {
    int64_t block_rate;
    int64_t mutex_fraction;
    uint32_t n_forks; /* that made this process */
} state CPPROF__AT_START __attribute__((aligned(32)));

static uint64_t
now_ns(void)
{
    uint64_t now;

    /* Another's clock_gettime() may lock something. */
    cpprof__hook_self.exempt++;
    now = cpprof__now_ns(CLOCK_MONOTONIC);
    cpprof__hook_self.exempt--;
    return now;
}

static uint64_t
random_number(void)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;

    if (!self->random)
        self->random = cpprof__hook_seed(self);
    return cpprof__hook_random(&self->random);
}

const char *
cpprof__wait_kind_name(uint32_t kind)
{
    static const char names[][16] = {
        /* ORDER: enum cpprof__wait_kind */
        "",          "mutex",     "read lock", "write lock", "lock",
        "condition", "semaphore", "barrier",   "join",
    };

    return kind < sizeof names / sizeof *names ? names[kind] : "";
}

/* ---- recording -------------------------------------------------------- */

/* In place of a number of frames: leave out all below the next outer hook. */
#define INSIDE UINT_MAX

/* The stack without its first frames. */
static uint32_t
skip_frames(struct cpprof__tree *tree, uint32_t stack, unsigned skip)
{
    static const uintptr_t lost[] = {CPPROF__FRAME_LOST};
    struct cpprof__tree_node node;

    while (stack && skip-- && cpprof__tree_node(tree, stack, &node)) {
        stack = node.parent;
        if (!stack)
            return cpprof__tree_add(tree, lost, 1);
    }
    return stack;
}

CPPROF__HOOK static uint32_t
record(enum cpprof__wait_profile profile, uint64_t count, uint64_t delay_ns,
       uintptr_t leaf, unsigned skip)
{
    struct cpprof__tree *tree = cpprof__heap.tree;
    uint32_t stack = 0, bucket;

    cpprof__hook_self.exempt++;
    if (tree && skip == INSIDE)
        stack = cpprof__hook_walk_outside(tree);
    else if (tree)
        /* An allocator may wait, too, perhaps after it has freed something that
         * an interpreter still uses. */
        stack = skip_frames(tree, cpprof__hook_walk(tree, false), skip);
    if (stack && leaf)
        stack = cpprof__tree_add_leaf(tree, stack, leaf);
    bucket = cpprof__wait_count(profile, stack, count, delay_ns);
    cpprof__hook_self.exempt--;
    return bucket;
}

/* With the probability d / rate; d < rate <= 2^40. Of 64 bits the upper ones of
 * a product are as good as a remainder, which takes ten times as long. */
static bool
is_below(uint64_t d, uint64_t rate)
{
    return (unsigned __int128)random_number() * rate >> 64 < d;
}

/* Source: Go runtime/mprof.go, blocksampled and saveblockevent. */
static inline __attribute__((always_inline)) void
event(int64_t ns, uintptr_t leaf, unsigned skip)
{
    uint64_t rate = (uint64_t)load_relaxed(&state.block_rate);
    uint64_t d = ns > 0 ? (uint64_t)ns : 1;

    if (!rate)
        return;
    if (d > WAIT_MAX)
        d = WAIT_MAX;
    if (d >= rate)
        record(CPPROF__WAIT_BLOCK, ONE, d, leaf, skip);
    else if (is_below(d, rate))
        record(CPPROF__WAIT_BLOCK, (rate * ONE + d / 2) / d, rate, leaf, skip);
}

CPPROF__HOOK void
cpprof__wait_event(int64_t ns, const void *leaf, unsigned skip)
{
    event(ns, (uintptr_t)leaf, skip < INSIDE ? skip : INSIDE - 1);
    __asm__ volatile("");
}

/* The time that a charge stands for, since one wait in n is followed. */
static uint64_t
weighted_ns(struct cpprof__wait_charge charge, uint64_t n)
{
    return n * (charge.ns < WAIT_MAX / n ? charge.ns : WAIT_MAX / n);
}

/* Add a charge to a bucket that was charged before. */
static void
charge_more(uint32_t bucket, struct cpprof__wait_charge charge)
{
    uint64_t n = (uint64_t)load_relaxed(&state.mutex_fraction);

    if (n && (charge.ns || charge.n))
        cpprof__wait_count_more(bucket, n * charge.n * ONE,
                                weighted_ns(charge, n));
}

/* Each wait is one contention of the thread that gave the lock up last before
 * it ended. In Go it is that of the thread which takes it out of the queue. */
CPPROF__HOOK void
cpprof__wait_released(const void *lock, struct cpprof__wait_charge charge,
                      const void *leaf)
{
    uint64_t n = (uint64_t)load_relaxed(&state.mutex_fraction);
    struct cpprof__wait_charge more;
    uint32_t bucket = 0;

    if (n)
        bucket = record(CPPROF__WAIT_MUTEX, n * charge.n * ONE,
                        weighted_ns(charge, n), (uintptr_t)leaf, 0);
    more = cpprof__wait_table_released(lock, bucket, now_ns());
    if (bucket)
        charge_more(bucket, more);
    __asm__ volatile("");
}

/* ---- waits in progress ------------------------------------------------ */

static bool
is_in_own_stack(uintptr_t at)
{
    const struct cpprof__hook_self *self = &cpprof__hook_self;

    return at - self->stack_lo < self->stack_hi - self->stack_lo ||
           at - cpprof__main_stack_lo <
               cpprof__main_stack_hi - cpprof__main_stack_lo;
}

/* Of a stack whose bounds are not known, frames that are so near above may be
 * callers. */
#define NEAR 16384

/* Hooks that are called from one frame are not all as large. What a handler
 * calls is further below. */
#define HOOK_FRAMES 96

/*
 * Was this wait left without an end? Decided by the frame of the thread that
 * now begins to wait or releases something. A handler may run on its own stack,
 * which it enters and leaves as a whole. So does a coroutine, which may
 * continue later, but not within a call of a hook. A frame may have several
 * waits of the program's own.
 */
static bool
was_left(const struct cpprof__wait_entry *e, uintptr_t frame)
{
    bool was_own = is_in_own_stack(e->frame), is_own = is_in_own_stack(frame);
    bool is_other = e->now.kind == CPPROF__WAITS_OTHER_LOCK;

    if (!e->frame)
        return false;
    if (was_own != is_own)
        return is_own && !is_other;
    if (!is_own && frame + HOOK_FRAMES - e->frame > NEAR)
        return false;
    return is_other ? frame > e->frame : frame + HOOK_FRAMES >= e->frame;
}

/* Does a handler run on an alternate stack that the wait is not on? That stack
 * may lie further up in the one it interrupted, in a variable of a caller.
 * Source: sigaltstack(2). */
static bool
is_interrupted(const struct cpprof__wait_entry *e)
{
    stack_t other = {.ss_flags = 0};

    cpprof__syscall(SYS_sigaltstack, 0, (long)&other, 0, 0, 0, 0);
    return other.ss_flags & SS_ONSTACK &&
           e->frame - (uintptr_t)other.ss_sp >= other.ss_size;
}

/* Leave the table of waiters, and charge what was not charged yet. */
static void
leave_slot(uint32_t slot, enum cpprof__wait_result result, uint64_t start_ns,
           uint64_t end_ns)
{
    uint32_t bucket;
    struct cpprof__wait_charge charge =
        cpprof__wait_table_remove(slot, result, start_ns, end_ns, &bucket);

    if (bucket)
        charge_more(bucket, charge);
}

static inline void
take_out(struct cpprof__wait_self *self, struct cpprof__wait_entry *e)
{
    e->now.kind = CPPROF__WAITS_NOT;
    e->frame = 0;
    e->slot = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->n--;
}

/* End all entries from this one on; those above it were left before. Each is
 * removed from the stack before it leaves the table of waiters, so that a
 * handler in between does not do it again. */
__attribute__((cold, noinline)) static void
drop_from(uint32_t first, enum cpprof__wait_result result, uint64_t end_ns)
{
    struct cpprof__wait_self *self = cpprof__wait_own;

    while (self->n > first) {
        struct cpprof__wait_entry *e = &self->entries[self->n - 1], was = *e;

        take_out(self, e);
        /* When the others were left is not known: they count as no waits. */
        if (was.slot)
            leave_slot(was.slot, self->n == first ? result : CPPROF__WAIT_NONE,
                       was.now.start_ns, end_ns);
    }
}

__attribute__((cold, noinline)) static void
drop_left(uintptr_t frame)
{
    struct cpprof__wait_self *self = cpprof__wait_own;
    uint32_t n = self->n;

    while (n && was_left(&self->entries[n - 1], frame) &&
           !is_interrupted(&self->entries[n - 1]))
        n--;
    if (n < self->n)
        drop_from(n, CPPROF__WAIT_NONE, 0);
}

void
cpprof__waits_thread_ended(void)
{
    if (cpprof__wait_own && cpprof__wait_own->n)
        drop_from(0, CPPROF__WAIT_GAVE_UP, now_ns());
    cpprof__wait_self_give();
}

/* The caller of the hook, or of cpprof_wait_begin(), has its frame above. */
#define OWN_FRAMES 64

static inline __attribute__((always_inline)) struct cpprof__wait_entry *
add_entry(struct cpprof__wait *wait, enum cpprof__wait_kind kind,
          const void *lock)
{
    struct cpprof__wait_self *self = cpprof__wait_own;
    struct cpprof__wait_entry *e;
    uintptr_t frame = (uintptr_t)wait;

    if (kind == CPPROF__WAITS_OTHER_LOCK)
        frame = (uintptr_t)__builtin_frame_address(0) + OWN_FRAMES;
    if (self->n)
        drop_left(frame);
    if (self->n == CPPROF__WAITS_NESTED)
        drop_from(0, CPPROF__WAIT_NONE, 0);
    e = &self->entries[self->n++];
    /* For a handler that looks, or waits, in between. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    wait->serial = ++self->serial;
    e->serial = wait->serial;
    e->wait = wait;
    e->now.lock = lock;
    e->now.start_ns = wait->start_ns;
    e->now.leaf = wait->leaf;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    e->now.kind = kind;
    e->frame = frame;
    return e;
}

/* End the entry of a wait, unless it was found to be left, or belongs to
 * another thread. */
static inline void
end_entry(const struct cpprof__wait *wait, enum cpprof__wait_result result,
          uint64_t end_ns)
{
    struct cpprof__wait_self *self = cpprof__wait_own;
    uint32_t n = self ? self->n : 0; /* another thread may end it */

    while (n && (self->entries[n - 1].wait != wait ||
                 self->entries[n - 1].serial != wait->serial))
        n--;
    if (n && n == self->n && !self->entries[n - 1].slot)
        take_out(self, &self->entries[n - 1]);
    else if (n)
        drop_from(n - 1, result, end_ns);
}

/* ---- waits ------------------------------------------------------------ */

static bool
can_be_held(enum cpprof__wait_kind kind)
{
    return kind <= CPPROF__WAITS_OTHER_LOCK;
}

static bool
is_one_of(uint64_t n)
{
    return n && (n == 1 || is_below(1, n));
}

/* Defer asynchronous cancellation while a thread is being counted in or out;
 * otherwise it could stay counted for ever. */
static inline int
defer_cancellation(void)
{
    int type = PTHREAD_CANCEL_DEFERRED;

    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    return type;
}

static inline void
cancel_as_before(int type)
{
    if (type != PTHREAD_CANCEL_DEFERRED)
        pthread_setcanceltype(type, NULL);
}

static inline __attribute__((always_inline)) struct cpprof__wait_entry *
begin(struct cpprof__wait *wait, enum cpprof__wait_kind kind, const void *lock,
      const void *leaf)
{
    wait->is_seen = !cpprof__hook_self.exempt && !cpprof__waits_are_off() &&
                    cpprof__wait_self_take();
    wait->may_unwind = wait->is_seen && is_in_own_stack((uintptr_t)wait);
    if (!wait->is_seen)
        return NULL;
    wait->start_ns = now_ns();
    wait->slot = 0;
    wait->is_followed = false;
    wait->n_forks = state.n_forks;
    wait->leaf = (uintptr_t)leaf;
    return add_entry(wait, kind, lock);
}

void
cpprof__wait_begin(struct cpprof__wait *wait, enum cpprof__wait_kind kind,
                   const void *lock, const void *leaf)
{
    struct cpprof__wait_entry *e = begin(wait, kind, lock, leaf);
    uint32_t slot;
    int type;

    if (!e || !can_be_held(kind) ||
        !is_one_of((uint64_t)load_relaxed(&state.mutex_fraction)))
        return;
    type = defer_cancellation();
    slot = cpprof__wait_table_add(lock, wait->start_ns);
    wait->is_followed = slot != 0;
    /* The program's own waits may be ended by another thread. */
    if (kind == CPPROF__WAITS_OTHER_LOCK)
        wait->slot = slot;
    else
        e->slot = slot;
    cancel_as_before(type);
}

static inline __attribute__((always_inline)) void
end(struct cpprof__wait *wait, enum cpprof__wait_result result, unsigned skip)
{
    uint64_t end_ns = 0;
    bool is_timed;
    int type = 0;

    if (!wait->is_seen)
        return;
    wait->is_seen = 0;
    is_timed = wait->is_followed || load_relaxed(&state.block_rate);
    if (is_timed)
        end_ns = now_ns();
    if (wait->is_followed)
        type = defer_cancellation();
    end_entry(wait, result, end_ns);
    if (wait->slot && wait->n_forks == state.n_forks)
        leave_slot(wait->slot, result, wait->start_ns, end_ns);
    if (wait->is_followed)
        cancel_as_before(type);
    if (is_timed && result != CPPROF__WAIT_NONE)
        event((int64_t)(end_ns - wait->start_ns), wait->leaf, skip);
}

CPPROF__HOOK void
cpprof__wait_end(struct cpprof__wait *wait, enum cpprof__wait_result result)
{
    end(wait, result, 0);
    __asm__ volatile("");
}

CPPROF__HOOK void
cpprof__wait_unwound(struct cpprof__wait *wait)
{
    end(wait, CPPROF__WAIT_GAVE_UP, INSIDE);
    __asm__ volatile("");
}

/* ---- giving up -------------------------------------------------------- */

bool
cpprof__wait_release(const void *lock, struct cpprof__wait_charge *charge)
{
    struct cpprof__wait_self *self = cpprof__wait_own;

    if (cpprof__hook_self.exempt || !load_relaxed(&state.mutex_fraction))
        return false;
    if (self && self->n && cpprof__wait_self_is_mine())
        drop_left((uintptr_t)__builtin_frame_address(0));
    if (!cpprof__wait_is_followed(lock))
        return false;
    *charge = cpprof__wait_table_release(lock, now_ns());
    return true;
}

/* ---- rates ------------------------------------------------------------ */

static uint32_t
which_are_on(void)
{
    return (load_acquire(&state.block_rate) ? CPPROF__WAITS_BLOCK : 0) |
           (load_acquire(&state.mutex_fraction) ? CPPROF__WAITS_MUTEX : 0);
}

static int64_t
set(int64_t *rate, int64_t to, int64_t max)
{
    struct cpprof__waits_head *head;
    int64_t before;
    void (*changed)(void);
    uint32_t on;

    if (to < 0)
        return load_relaxed(rate);
    /* Without room for the tables nothing is recorded. */
    if (to && cpprof__heap.tree &&
        (!cpprof__waits_reserve() ||
         !cpprof__hook_walk_reserve(cpprof__heap.tree)))
        to = 0;
    if (to)
        cpprof__wait_self_begin();
    before = swap_acq_rel(rate, to < max ? to : max);
    /* Another thread may set the other one. */
    do {
        on = which_are_on();
        store_release(&cpprof__waits_on, on);
    } while (on != which_are_on());
    changed = load_acquire(&cpprof__waits_changed);
    if (changed)
        changed();
    head = load_acquire(&cpprof__waits.head);
    if (!head)
        return before;
    store_relaxed(&head->block_rate, load_relaxed(&state.block_rate));
    store_relaxed(&head->mutex_fraction, load_relaxed(&state.mutex_fraction));
    cpprof__mirror(head, sizeof *head);
    return before;
}

int64_t
cpprof__waits_set_block_rate(int64_t ns)
{
    return set(&state.block_rate, ns, BLOCK_RATE_MAX);
}

int64_t
cpprof__waits_set_mutex_fraction(int64_t n)
{
    return set(&state.mutex_fraction, n, MUTEX_FRACTION_MAX);
}

CPPROF__FIRST_STEP void
cpprof__waits_forked(void)
{
    uint32_t i;

    for (i = 0; cpprof__wait_own && i < CPPROF__WAITS_NESTED; i++)
        cpprof__wait_own->entries[i].slot = 0;
    cpprof__wait_self_begin();
    state.n_forks++;
    cpprof__wait_table_forked();
    cpprof__wait_buckets_forked();
}
