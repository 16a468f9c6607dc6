/* SPDX-License-Identifier: MIT */
#include "collect/signal/waits.h"

#include "collect/signal/heap.h"
#include "collect/signal/heap_random.h"
#include "collect/signal/heap_stack.h"
#include "collect/signal/mirror.h"
#include "collect/signal/stack_tree.h"
#include "collect/signal/wait_buckets.h"

#include <time.h>

/* Higher ones are as these: sums of 64 bits cannot overflow by one of them.
 * 2^40 ns are 18 minutes. */
#define BLOCK_RATE_MAX     ((int64_t)1 << 40)
#define MUTEX_FRACTION_MAX INT32_MAX

/* No wait was longer than 2^52 ns, 52 days; what says so is a broken clock. */
#define WAIT_MAX ((uint64_t)1 << 52)

#define ONE ((uint64_t)1 << CPPROF__WAIT_FRACTION_BITS)

/* A frame in place of a stack that has fewer than were to be skipped; ORDER:
 * enum cpprof__own_frame in collect/builder.h. */
#define OWN_LOST 1

__thread struct cpprof__wait_self cpprof__wait_self;
uint32_t cpprof__waits_on;
void (*cpprof__waits_changed)(void);

static int64_t block_rate;
static int64_t mutex_fraction;

static uint64_t
now_ns(void)
{
    struct timespec t = {0, 0};

    /* Another's clock_gettime() may lock something. */
    cpprof__heap_self.exempt++;
    clock_gettime(CLOCK_MONOTONIC, &t);
    cpprof__heap_self.exempt--;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t
random_number(void)
{
    struct cpprof__wait_self *self = &cpprof__wait_self;

    if (!self->random)
        self->random = cpprof__heap_seed(self);
    return cpprof__heap_random(&self->random);
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

/* The stack without its first frames. */
static uint32_t
skip_frames(struct cpprof__tree *tree, uint32_t stack, unsigned skip)
{
    static const uintptr_t lost[] = {OWN_LOST};
    struct cpprof__tree_node node;

    while (stack && skip-- && cpprof__tree_node(tree, stack, &node)) {
        stack = node.parent;
        if (!stack)
            return cpprof__tree_add(tree, lost, 1);
    }
    return stack;
}

CPPROF__HOOK static void
record(enum cpprof__wait_profile profile, uint64_t count, uint64_t delay_ns,
       uintptr_t leaf, unsigned skip)
{
    struct cpprof__tree *tree = cpprof__heap.tree;
    uint32_t stack = 0;

    cpprof__heap_self.exempt++;
    if (tree)
        stack = skip_frames(tree, cpprof__heap_walk(tree), skip);
    if (stack && leaf)
        stack = cpprof__tree_add_leaf(tree, stack, leaf);
    cpprof__wait_count(profile, stack, count, delay_ns);
    cpprof__heap_self.exempt--;
}

/* Source: Go runtime/mprof.go, blocksampled and saveblockevent. */
CPPROF__HOOK void
cpprof__wait_event(int64_t ns, const void *leaf, unsigned skip)
{
    uint64_t rate = (uint64_t)load_relaxed(&block_rate);
    uint64_t d = ns > 0 ? (uint64_t)ns : 1;

    if (!rate)
        return;
    if (d > WAIT_MAX)
        d = WAIT_MAX;
    if (d >= rate)
        record(CPPROF__WAIT_BLOCK, ONE, d, (uintptr_t)leaf, skip);
    else if (random_number() % rate < d)
        record(CPPROF__WAIT_BLOCK, (rate * ONE + d / 2) / d, rate,
               (uintptr_t)leaf, skip);
    __asm__ volatile("");
}

CPPROF__HOOK void
cpprof__wait_released(uint64_t waited_ns, const void *leaf)
{
    uint64_t n = (uint64_t)load_relaxed(&mutex_fraction);

    if (n && (n == 1 || random_number() % n == 0))
        record(CPPROF__WAIT_MUTEX, n * ONE,
               n * (waited_ns < WAIT_MAX / n ? waited_ns : WAIT_MAX / n),
               (uintptr_t)leaf, 0);
    __asm__ volatile("");
}

/* ---- waits ------------------------------------------------------------ */

static bool
can_be_held(enum cpprof__wait_kind kind)
{
    return kind <= CPPROF__WAITS_OTHER_LOCK;
}

void
cpprof__wait_begin(struct cpprof__wait *wait, enum cpprof__wait_kind kind,
                   const void *lock, const void *leaf)
{
    struct cpprof__wait_now *now = &cpprof__wait_self.now;

    wait->is_seen = !cpprof__heap_self.exempt && !cpprof__waits_are_off();
    if (!wait->is_seen)
        return;
    wait->start_ns = now_ns();
    wait->outer = *now;
    wait->slot = 0;
    wait->leaf = (uintptr_t)leaf;
    if (load_relaxed(&mutex_fraction) && can_be_held(kind))
        wait->slot = cpprof__wait_enter(lock, wait->start_ns);
    /* For a handler that looks in between. */
    now->kind = CPPROF__WAITS_NOT;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    now->lock = lock;
    now->start_ns = wait->start_ns;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    now->kind = kind;
}

CPPROF__HOOK void
cpprof__wait_end(struct cpprof__wait *wait, enum cpprof__wait_result result)
{
    struct cpprof__wait_now *now = &cpprof__wait_self.now;
    uint64_t end_ns;

    if (!wait->is_seen)
        return;
    wait->is_seen = 0;
    end_ns = now_ns();
    now->kind = CPPROF__WAITS_NOT;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    now->lock = wait->outer.lock;
    now->start_ns = wait->outer.start_ns;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    now->kind = wait->outer.kind;
    if (wait->slot)
        cpprof__wait_leave(wait->slot, result, wait->start_ns, end_ns);
    if (result != CPPROF__WAIT_NONE)
        cpprof__wait_event((int64_t)(end_ns - wait->start_ns),
                           (const void *)wait->leaf, 0);
    __asm__ volatile("");
}

uint64_t
cpprof__wait_release(const void *lock)
{
    if (cpprof__heap_self.exempt || !load_relaxed(&mutex_fraction))
        return 0;
    return cpprof__wait_charge(lock, now_ns());
}

/* ---- rates ------------------------------------------------------------ */

static uint32_t
which_are_on(void)
{
    return (load_acquire(&block_rate) ? CPPROF__WAITS_BLOCK : 0) |
           (load_acquire(&mutex_fraction) ? CPPROF__WAITS_MUTEX : 0);
}

static int64_t
set(int64_t *rate, int64_t to, int64_t max)
{
    struct cpprof__waits_head *head = cpprof__waits.head;
    int64_t before;
    void (*changed)(void);
    uint32_t on;

    if (to < 0)
        return load_relaxed(rate);
    before = swap_acq_rel(rate, to < max ? to : max);
    /* Another thread may set the other one. */
    do {
        on = which_are_on();
        store_release(&cpprof__waits_on, on);
    } while (on != which_are_on());
    changed = load_acquire(&cpprof__waits_changed);
    if (changed)
        changed();
    store_relaxed(&head->block_rate, load_relaxed(&block_rate));
    store_relaxed(&head->mutex_fraction, load_relaxed(&mutex_fraction));
    cpprof__mirror(head, sizeof *head);
    return before;
}

int64_t
cpprof__waits_set_block_rate(int64_t ns)
{
    return set(&block_rate, ns, BLOCK_RATE_MAX);
}

int64_t
cpprof__waits_set_mutex_fraction(int64_t n)
{
    return set(&mutex_fraction, n, MUTEX_FRACTION_MAX);
}

void
cpprof__waits_forked(void)
{
    cpprof__wait_table_forked();
    cpprof__wait_buckets_forked();
    cpprof__wait_self.random = 0;
}
