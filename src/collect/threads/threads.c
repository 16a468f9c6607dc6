/* SPDX-License-Identifier: MIT */
/*
 * The threads of a session, old and new ones: each gets a slot and is armed.
 *
 * A thread made by pthread_create is announced by its creator, which gives it
 * a slot; the new thread arms itself before it runs the program's code, and
 * charges its rest and gives the slot back as the last thing it does. All
 * other threads are found by a scan of /proc/self/task, which also charges
 * time that came without a tick.
 *
 * Protocol: `lock` guards the table and the session's plan. A handler reads
 * its own slot without the lock: the slot's generation is stored last, with
 * release order, and says for which session it is armed.
 *
 * Invariants: slots are never freed, so a late signal always finds memory; a
 * tid has at most one slot.
 */
#include "collect/threads/threads.h"

#include "arch/atomic.h"
#include "arch/libc.h"
#include "arch/mix.h"
#include "arch/place.h"
#include "collect/labels/labels.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/sample/question_timer.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/waits/waits.h"
#include "collect/threads/events.h"
#include "collect/threads/stacks.h"
#include "collect/threads/tasks.h"
#include "collect/threads/thread_creation.h"
#include "own/memory.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The tids of ended threads that are remembered for the next scan. */
#define ENDED_MAX 1024

/* Tunable: slots that a scan looks at while others wait. */
#define LOOKS_AT_ONCE 64

/* A slot that is announced but whose thread has not started yet. */
#define TID_ANNOUNCED (-1)

static pthread_mutex_t lock CPPROF__AT_START = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by lock. */
/* .engine NULL: no session. */
static struct cpprof__threads_plan plan CPPROF__AT_START;
/* The process that the session is of. A child that a bare clone() made has the
 * plan, and may have the signal's action set back to what ends it. */
static int32_t owner CPPROF__AT_START;
static uint32_t first_free CPPROF__AT_START; /* slot + 1; 0: none */
static uint32_t n_seen CPPROF__AT_START;
static uint32_t n_armed CPPROF__AT_START;
/* Tids that may not be gone yet; 0: none. */
static int32_t ended[ENDED_MAX] CPPROF__LARGE;
static uint32_t n_ended;
static bool has_begun; /* the threads of the start are armed */
static uint64_t phase_state CPPROF__AT_START;

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static bool has_exit_key;

/*
 * The CPU time until a thread's first tick: uniform over the period, and taken
 * from a sequence that covers it evenly (steps of the golden ratio from a
 * random start), so that the time of many short threads adds up to less noise
 * than independent draws would give.
 */
static uint64_t
draw_phase(void)
{
    if (!phase_state &&
        getrandom(&phase_state, sizeof phase_state, GRND_NONBLOCK) < 0)
        phase_state = cpprof__clock_ns(CLOCK_MONOTONIC);
    phase_state += CPPROF__GOLDEN;
    return 1 +
           (uint64_t)((unsigned __int128)phase_state * plan.period_ns >> 64);
}

/* A slot that was never in use. Each has pages of its own, so none is touched
 * before. */
static struct cpprof__thread *
new_slot(void)
{
    uint32_t n = cpprof__n_thread_slots;
    struct cpprof__thread **chunk;

    if (n >= CPPROF__MAX_THREADS)
        return NULL;
    chunk = &cpprof__thread_chunks[n / CPPROF__THREADS_PER_CHUNK];
    if (!*chunk)
        store_release(
            chunk, cpprof__reserve(CPPROF__THREADS_PER_CHUNK * sizeof **chunk));
    if (!*chunk)
        return NULL;
    (*chunk)[n % CPPROF__THREADS_PER_CHUNK].index = n;
    (*chunk)[n % CPPROF__THREADS_PER_CHUNK].perf_fd = -1;
    store_release(&cpprof__n_thread_slots, n + 1);
    return cpprof__thread_at(n);
}

CPPROF__FIRST_STEP static void
set_tid(struct cpprof__thread *t, int32_t tid)
{
    store_release(&t->tid, tid);
    store_release(&cpprof__thread_tids[t->index], tid);
}

static struct cpprof__thread *
take_slot(int32_t tid)
{
    struct cpprof__thread *t;

    t = first_free ? cpprof__thread_at(first_free - 1) : new_slot();
    if (!t)
        return NULL;
    if (first_free)
        first_free = t->next_free;
    /* The thread that had it has ended; acquire what its handlers stored last.
     */
    (void)load_acquire(&t->busy);
    t->start = 0;
    t->start_arg = NULL;
    t->stack_lo = t->stack_hi = t->stack_end = 0;
    t->seen_delivered = UINT64_MAX; /* not idle before it was seen once */
    t->delivered = t->precharged_ticks = t->missed = 0;
    t->seen_sp = t->seen_tp = 0;
    t->busy = 0;
    t->is_adopted = false;
    t->session = plan.generation;
    set_tid(t, tid);
    return t;
}

CPPROF__FIRST_STEP static void
give_slot(struct cpprof__thread *t)
{
    store_relaxed(&t->generation, 0);
    set_tid(t, 0);
    t->next_free = first_free;
    first_free = t->index + 1;
}

/* A thread that was there when the session started counts from now, or from the
 * birth of the process; a later one from its own, whenever it is found. */
static uint64_t
base_of(const struct cpprof__thread *t)
{
    if (has_begun)
        return 0;
    if (plan.birth)
        return t->tid == plan.birth->tid ? plan.birth->thread_cpu_ns : 0;
    return cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
}

/* From here on a handler may use the slot. */
static void
begin_clock(struct cpprof__thread *t)
{
    t->phase_ns = draw_phase();
    t->base_ns = base_of(t);
    store_release(&t->generation, plan.generation);
}

/* Perf events are added when the drainer comes. */
static void
arm(struct cpprof__thread *t)
{
    struct cpprof__ring *ring = load_acquire(&cpprof__sampler.ring);

    cpprof__timer_arm(t, plan.period_ns);
    if (plan.engine == &cpprof__engine_perf && ring)
        cpprof__ring_wake(ring);
}

static void
disarm(struct cpprof__thread *t)
{
    cpprof__timer_disarm(t);
    cpprof__perf_disarm(t);
}

/* It is armed by arm_adopted(). */
static void
adopt(int32_t tid)
{
    struct cpprof__thread *t = take_slot(tid);

    if (!t)
        return;
    begin_clock(t);
    t->is_adopted = true;
    add_relaxed(&n_seen, 1u);
    add_relaxed(&n_armed, 1u);
}

/* A few at a time: threads that start or end do not wait for all. */
static void
for_each_thread(void (*act)(struct cpprof__thread *t))
{
    struct cpprof__thread *t = NULL;
    uint32_t i = 0, n;

    do {
        pthread_mutex_lock(&lock);
        for (n = 0; n < LOOKS_AT_ONCE && (t = cpprof__thread_at(i)); i++, n++)
            if (plan.engine && t->tid > 0)
                act(t);
        pthread_mutex_unlock(&lock);
    } while (t);
}

static void
arm_adopted(struct cpprof__thread *t)
{
    if (t->is_adopted)
        arm(t);
    t->is_adopted = false;
}

static void
drop(struct cpprof__thread *t)
{
    disarm(t);
    give_slot(t);
    add_relaxed(&n_armed, -1u);
}

static int
compare_tids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* A thread that gave its slot back runs on for a moment; a scan must not take
 * it for a new one. */
static bool
has_ended(int32_t tid)
{
    size_t i;

    for (i = 0; i < ENDED_MAX; i++)
        if (ended[i] == tid)
            return true;
    return false;
}

static bool
is_gone(int32_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) && errno == ESRCH;
}

static void
forget_ended(void)
{
    size_t i;

    for (i = 0; i < ENDED_MAX; i++)
        if (ended[i] && is_gone(ended[i]))
            ended[i] = 0;
}

/*
 * Adopt the tids that have no slot, and forget slots whose thread is gone. The
 * list was made without the lock, so that no thread waits for that when it
 * starts or ends: what it says is a reason to ask the kernel about one thread.
 * A thread that lives keeps its slot whatever the list says: dropped and
 * adopted again, its whole life would be charged twice.
 */
static void
reconcile(const int32_t *tids, size_t n)
{
    bool *known = tids ? cpprof__calloc(n, 1) : NULL;
    struct cpprof__thread *t;
    uint32_t slot;
    size_t i;

    for (slot = 0; known && (t = cpprof__thread_at(slot)); slot++) {
        int32_t *at;

        if (t->tid <= 0)
            continue;
        at = bsearch(&t->tid, tids, n, sizeof *tids, compare_tids);
        if (at)
            known[at - tids] = true;
        /* One of our own threads, which was found before it could say so. */
        else if (cpprof__own_thread_runs(t->tid))
            add_relaxed(&n_seen, -1u);
        if (!at && (cpprof__own_thread_runs(t->tid) || is_gone(t->tid)))
            drop(t);
    }
    for (i = 0; known && i < n; i++)
        if (!known[i] && !has_ended(tids[i]) && !is_gone(tids[i]))
            adopt(tids[i]);
    forget_ended();
    cpprof__free(known);
}

/*
 * CPU time that a thread used without a tick since the last scan, because it
 * blocks the signal by a bare system call, is charged to a frame that says so.
 * If the ticks come later after all, the handler subtracts what was charged
 * here. At stop all time without a tick is charged, whatever the reason.
 */
static void
charge_missing(struct cpprof__thread *t, bool at_stop)
{
    uint64_t now = cpprof__clock_ns(CPPROF__THREAD_CPU_CLOCK(t->tid));
    uint64_t due = cpprof__ticks_due(t, now, plan.period_ns);
    uint64_t precharged = load_acquire(&t->precharged_ticks);
    uint64_t had = precharged + load_acquire(&t->delivered);
    uintptr_t frame = CPPROF__FRAME_BLOCKED;

    if (due <= had + 1) /* one may be on its way */
        return;
    cpprof__perf_push(t, plan.period_ns);
    if (!cpprof__sampler_is_refused() &&
        !cpprof__proc_blocks(t->tid, CPPROF__SIGNAL))
        frame = at_stop ? CPPROF__FRAME_EXITED : 0;
    if (frame &&
        cas_acq_rel(&t->precharged_ticks, &precharged, precharged + due - had))
        cpprof__sampler_charge(t, (uint32_t)(due - had), frame);
}

static void
look_after(struct cpprof__thread *t)
{
    uint64_t delivered;

    if (t->has_timer && cpprof__timers_are_many(0)) /* the limit is lower now */
        cpprof__timer_disarm(t);
    delivered = load_relaxed(&t->delivered);
    if (delivered == t->seen_delivered)
        charge_missing(t, false);
    t->seen_delivered = delivered;
}

static void
learn_stacks(void)
{
    struct cpprof__stacks_wanted wanted;
    struct cpprof__buffer maps = {0};

    pthread_mutex_lock(&lock);
    cpprof__stacks_find(&wanted);
    pthread_mutex_unlock(&lock);
    if (cpprof__stacks_read(&wanted, &maps)) {
        pthread_mutex_lock(&lock);
        cpprof__stacks_learn(&wanted, &maps);
        pthread_mutex_unlock(&lock);
    }
    cpprof__buffer_free(&maps);
}

/* ---- perf events ------------------------------------------------------- */

void
cpprof__threads_leave_perf(void)
{
    if (!load_relaxed(&cpprof__sampler.uses_perf) || !cpprof__perf_is_here())
        return;
    cpprof__perf_refuse();
    if (plan.engine == &cpprof__engine_perf && !cpprof__own_thread_is_this())
        cpprof__events_ask();
}

void
cpprof__threads_leave_signals(void)
{
    __atomic_store_n(&cpprof__sampler.is_refused, 1u, __ATOMIC_SEQ_CST);
    cpprof__questions_wait();
    if (!cpprof__own_thread_is_this())
        cpprof__events_ask();
}

void
cpprof__threads_begin_events(void)
{
    struct cpprof__thread *t;
    uint32_t i;

    pthread_mutex_lock(&lock);
    cpprof__perf_own();
    for (i = 0; (t = cpprof__thread_at(i)); i++)
        if (t->perf_fd >= 0) /* a page that is written to is copied */
            store_relaxed(&t->perf_fd, -1);
    pthread_mutex_unlock(&lock);
}

void
cpprof__threads_tend_events(void)
{
    uint32_t n = cpprof__events_asked(), i = 0, end;
    bool is_over = cpprof__sampler_is_refused();
    struct cpprof__thread *t = NULL;

    do {
        pthread_mutex_lock(&lock);
        for (end = i + LOOKS_AT_ONCE; i < end && (t = cpprof__thread_at(i));
             i++) {
            if (plan.engine == &cpprof__engine_perf)
                cpprof__perf_tend(t, plan.period_ns);
            if (is_over)
                cpprof__timer_disarm(t);
        }
        pthread_mutex_unlock(&lock);
    } while (t);
    cpprof__events_tell_tended(n);
}

void
cpprof__threads_scan(bool full)
{
    int32_t *tids = NULL;
    size_t n = 0;

    if (load_relaxed(&cpprof__sampler.uses_perf) &&
        cpprof__proc_signals_queued() > CPPROF__PERF_QUEUED_MAX)
        cpprof__threads_leave_perf();
    if (full || cpprof__proc_n_threads() !=
                    load_relaxed(&n_armed) + cpprof__own_threads())
        tids = cpprof__tasks(NULL, 0, &n);
    pthread_mutex_lock(&lock);
    if (plan.engine && tids)
        reconcile(tids, n);
    pthread_mutex_unlock(&lock);
    cpprof__free(tids);
    for_each_thread(arm_adopted);
    for_each_thread(look_after);
    learn_stacks();
}

uint32_t
cpprof__threads_seen(void)
{
    return load_relaxed(&n_seen);
}

uint32_t
cpprof__threads_armed(void)
{
    uint32_t n;

    pthread_mutex_lock(&lock);
    n = load_relaxed(&n_armed);
    pthread_mutex_unlock(&lock);
    return n;
}

/* Without /proc: the main thread, and the caller. */
static void
adopt_known(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid), pid = (int32_t)getpid();

    if (!is_gone(pid))
        adopt(pid);
    if (tid != pid && !cpprof__own_thread_is_this())
        adopt(tid);
}

/* New threads are armed while those are listed that there are. */
void
cpprof__threads_begin(const struct cpprof__threads_plan *new_plan)
{
    int32_t *tids;
    size_t n = 0;

    pthread_mutex_lock(&lock);
    plan = *new_plan;
    owner = (int32_t)getpid();
    store_relaxed(&n_seen, 0u);
    store_relaxed(&n_armed, 0u);
    has_begun = false;
    pthread_mutex_unlock(&lock);
    tids = cpprof__tasks(NULL, 0, &n);
    pthread_mutex_lock(&lock);
    reconcile(tids, n);
    if (!tids)
        adopt_known();
    has_begun = true;
    cpprof__stack_note_own();
    pthread_mutex_unlock(&lock);
    cpprof__free(tids);
    for_each_thread(arm_adopted);
    learn_stacks();
}

void
cpprof__threads_end(void)
{
    struct cpprof__thread *t;
    uint32_t i;

    pthread_mutex_lock(&lock);
    for (i = 0; plan.engine && (t = cpprof__thread_at(i)); i++) {
        if (t->tid <= 0)
            continue;
        charge_missing(t, true);
        drop(t);
    }
    plan.engine = NULL;
    pthread_mutex_unlock(&lock);
}

/*
 * Charge the rest of a thread that ends. A CPU timer fires only on the
 * scheduler's tick, so ticks that fell due between the last one and the end
 * never came; a program of many short threads would lose much of its time. The
 * thread's CPU clock says how many there were.
 */
static void
charge_rest(struct cpprof__thread *t)
{
    uint64_t due = cpprof__ticks_due(
        t, cpprof__clock_ns(CLOCK_THREAD_CPUTIME_ID), plan.period_ns);
    uint64_t had =
        load_relaxed(&t->delivered) + load_relaxed(&t->precharged_ticks);
    uint64_t mask = 0;

    if (due <= had)
        return;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, sizeof mask);
    cpprof__sampler_charge(t, (uint32_t)(due - had),
                           cpprof__sampler_is_refused() ||
                                   mask >> (CPPROF__SIGNAL - 1) & 1
                               ? CPPROF__FRAME_BLOCKED
                               : CPPROF__FRAME_EXITED);
}

/* The slot of the calling thread in this session, or NULL. */
static struct cpprof__thread *
own_slot(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    struct cpprof__thread *t = cpprof__self.thread;

    if (!plan.engine)
        return NULL;
    if (!t || t->tid != tid || t->generation != plan.generation)
        t = cpprof__thread_of_tid(tid);
    return t;
}

/* Runs as late as a thread's own code can, in the thread. */
CPPROF__LIBC_CALLS_AT_END static void
at_thread_exit(void *value)
{
    struct cpprof__thread *t;
    CPPROF__UNCANCELLED;

    (void)value;
    if (cpprof__own_threads_are_anothers())
        return;
    cpprof__waits_thread_ended();
    cpprof__thread_creation_ended();
    pthread_mutex_lock(&lock);
    t = own_slot();
    if (t) {
        t->start = cpprof__self.start;
        disarm(t);
        charge_rest(t);
        ended[n_ended++ % ENDED_MAX] = t->tid;
        drop(t);
    }
    cpprof__self.thread = NULL;
    cpprof__self.generation = 0;
    pthread_mutex_unlock(&lock);
    if (cpprof__self.labels == cpprof__self.inherited)
        cpprof_labels_set_current(NULL);
    cpprof_labels_free(cpprof__self.inherited);
    cpprof__self.inherited = NULL;
}

static void
make_exit_key(void)
{
    has_exit_key = !pthread_key_create(&exit_key, at_thread_exit);
}

struct cpprof__thread *
cpprof__thread_announce(uintptr_t start, void *arg, size_t stack_bytes)
{
    struct cpprof__thread *t = NULL;

    pthread_mutex_lock(&lock);
    if (plan.engine && owner == (int32_t)getpid())
        t = take_slot(TID_ANNOUNCED);
    if (t) {
        t->start = start;
        t->start_arg = arg;
        t->stack_bytes = stack_bytes;
        t->start_labels = cpprof_labels_ref(cpprof__self.labels);
    }
    pthread_mutex_unlock(&lock);
    return t;
}

void
cpprof__thread_cancel(struct cpprof__thread *t)
{
    const void *labels = t->start_labels;

    pthread_mutex_lock(&lock);
    if (t->tid == TID_ANNOUNCED)
        give_slot(t);
    pthread_mutex_unlock(&lock);
    cpprof__labels_inherited_free(labels);
}

void
cpprof__thread_creation(uintptr_t start, const void *labels)
{
    cpprof__self.start = start;
    cpprof__self.labels = labels;
    cpprof__self.inherited = (void *)labels;
    pthread_once(&exit_key_once, make_exit_key);
    if (has_exit_key)
        pthread_setspecific(exit_key, &cpprof__self);
}

void
cpprof__thread_started(struct cpprof__thread *t)
{
    int32_t tid = (int32_t)syscall(SYS_gettid);
    struct cpprof__thread *found;

    cpprof__stack_of_new_thread(t, t->stack_bytes);
    cpprof__thread_creation(t->start, t->start_labels);
    pthread_mutex_lock(&lock);
    if (t->tid == TID_ANNOUNCED && plan.engine &&
        t->session == plan.generation) {
        /* A scan may have found the thread before the thread could claim its
         * slot. */
        found = cpprof__thread_of_tid(tid);
        if (found)
            drop(found);
        set_tid(t, tid);
        cpprof__self.thread = t;
        cpprof__self.generation = t->session;
        begin_clock(t);
        arm(t);
        add_relaxed(&n_seen, found ? 0u : 1u);
        add_relaxed(&n_armed, 1u);
    } else if (t->tid == TID_ANNOUNCED) {
        give_slot(t); /* the session ended before the thread started */
    }
    pthread_mutex_unlock(&lock);
}

/* The child has one thread and none of the parent's timers. Events are in a
 * table of descriptors that it does not have. All slots are free. If somebody
 * was at work on their list, who is not here, it is made anew. */
CPPROF__FIRST_STEP void
cpprof__threads_in_child(void)
{
    /* Nobody was at work on the list, so only what is taken is given back: each
     * slot that is touched is a page that is copied. */
    bool is_whole = !pthread_mutex_trylock(&lock);
    struct cpprof__thread *t;
    uint32_t i;

    if (!is_whole)
        first_free = 0;
    for (i = 0; (t = cpprof__thread_at(i)); i++) {
        if (is_whole && !load_relaxed(&cpprof__thread_tids[i]))
            continue;
        t->has_timer = false;
        t->perf_fd = -1;
        give_slot(t);
    }
    plan.engine = NULL;
    n_armed = n_seen = 0;
    cpprof__events_in_child();
    cpprof__timers_in_child();
    phase_state = 0;
    memset(&cpprof__self, 0, offsetof(struct cpprof__thread_self, labels));
    pthread_mutex_init(&lock, NULL);
}
