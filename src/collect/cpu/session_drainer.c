/* SPDX-License-Identifier: MIT */
/*
 * The drainer: a thread that empties the ring into the store, looks for threads
 * that nobody announced, and writes what a full store has. It ends with the
 * last of the program's own threads; in a process that ends by _exit() it does
 * what is left to be done (session.h).
 */
#include "collect/cpu/session_internal.h"
#include "own/memory.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/sample/sampler.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/threads/action.h"
#include "collect/threads/threads.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunables. The drainer wakes this often while samples come, less and less
 * often (down to the scan's pace) while none do, and at once when the ring is
 * half full. More often costs time, less often a larger ring. */
#define DRAIN_NS_MIN 100000000u
/* Threads nobody announced are found this late. */
#define SCAN_NS         1000000000u
#define FULL_SCAN_EVERY 10
/* Stop waits this long for handlers to leave. After that the memory is left to
 * the handler, which a debugger may hold. */
#define QUIET_TRIES 2000
#define QUIET_NS    1000000

/* ---- samples ---------------------------------------------------------- */

/* The store is full: its samples go to the captures, and the next store gets
 * the mappings that are there now. */
static bool
next_store(struct cpprof__drain *drain)
{
    struct cpprof__session *s = drain->ctx;

    struct cpprof__cpu_capture *c;

    for (c = s->captures; c; c = c->next)
        if (c->streams)
            cpprof__cpu_capture_stream(c);
    if (!cpprof__cpu_capture_next_store(s))
        return false;
    cpprof__mappings_init(&drain->mappings, drain->store, true);
    cpprof__mappings_refresh(&drain->mappings);
    return true;
}

uint64_t
cpprof__session_lost(const struct cpprof__session *s)
{
    return load_relaxed(&s->spool.ring->lost) + s->drain.n_lost;
}

static void
update_head(struct cpprof__session *s)
{
    struct cpprof__spool_head *head = s->spool.head;

    store_relaxed(&head->n_records, s->drain.n_records);
    store_relaxed(&head->n_threads, cpprof__threads_seen());
    if (s->sampling_ended)
        return;
    store_relaxed(&head->cpu_ns, cpprof__program_cpu_ns() - s->cpu_start_ns);
    store_relaxed(&head->last_mono_ns, cpprof__clock_ns(CLOCK_MONOTONIC));
}

uint64_t
cpprof__session_drain_locked(struct cpprof__session *s)
{
    uint64_t before = s->drain.n_records, clock = cpprof__labels_clock();
    uint64_t head = load_acquire(&s->spool.ring->head);

    if (swap_acq_rel(&s->unloaded, false))
        cpprof__mappings_refresh(&s->drain.mappings);
    cpprof__drain_all(&s->drain);
    if (load_relaxed(&s->spool.ring->tail) >= head)
        cpprof__labels_reader_passed(&s->labels_reader, clock);
    update_head(s);
    return s->drain.n_records - before;
}

static uint64_t
drain(struct cpprof__session *s)
{
    uint64_t n;

    cpprof__own_lock_take(&s->drain_lock);
    n = cpprof__session_drain_locked(s);
    cpprof__own_lock_give(&s->drain_lock);
    return n;
}

void
cpprof__session_drain_begin(struct cpprof__session *s)
{
    cpprof__labels_reader_begin(&s->labels_reader);
    s->drain.ring = s->spool.ring;
    s->drain.store = &s->spool.store;
    s->drain.live = true;
    if (s->names_threads) /* else, or without memory, there are no names */
        s->drain.names = cpprof__calloc(1, sizeof *s->drain.names);
    s->drain.next_store = next_store;
    s->drain.ctx = s;
    cpprof__mappings_init(&s->drain.mappings, &s->spool.store, true);
    cpprof__mappings_refresh(&s->drain.mappings);
}

void
cpprof__session_drain_free(struct cpprof__session *s)
{
    cpprof__labels_reader_end(&s->labels_reader);
    cpprof__drain_free(&s->drain);
}

/* ---- the end of sampling ---------------------------------------------- */

static void
wait_until_quiet(void)
{
    int i;

    for (i = 0; i < QUIET_TRIES; i++) {
        if (!__atomic_load_n(&cpprof__sampler.n_inside, __ATOMIC_SEQ_CST))
            return;
        cpprof__sleep_ns(QUIET_NS);
    }
}

/* After this no handler touches the session's memory. */
void
cpprof__session_end_sampling(struct cpprof__session *s)
{
    if (s->sampling_ended)
        return;
    cpprof__threads_end();
    cpprof__interp_flush();
    __atomic_store_n(&cpprof__sampler.ring, NULL, __ATOMIC_SEQ_CST);
    wait_until_quiet();
    cpprof__own_lock_take(&s->drain_lock);
    cpprof__session_drain_locked(s);
    cpprof__cpu_capture_end_all(s);
    store_release(&s->sampling_ended, true);
    cpprof__own_lock_give(&s->drain_lock);
    store_release(&s->spool.head->state, (uint32_t)CPPROF__SPOOL_ENDED);
}

/* ---- the drainer ------------------------------------------------------ */

static void
wait_for_work(struct cpprof__ring *ring, uint64_t wait_ns)
{
    const struct timespec timeout = cpprof__timespec_of(wait_ns);

    syscall(SYS_futex, &ring->wake, FUTEX_WAIT, 0, &timeout, NULL, 0);
    store_release(&ring->wake, 0u);
}

static void
scan(const struct cpprof__session *s, uint32_t n_scans)
{
    cpprof__action_check();
    if (s->at_scan)
        s->at_scan();
    cpprof__loader_refresh();
    cpprof__threads_scan(n_scans % FULL_SCAN_EVERY == 1);
}

static bool
drainer(void *arg)
{
    struct cpprof__session *s = arg;
    uint64_t wait_ns = DRAIN_NS_MIN,
             scanned = cpprof__clock_ns(CLOCK_MONOTONIC);
    uint32_t n_scans = 0;

    cpprof__threads_begin_events();
    sem_post(&s->drainer_is_up);
    while (!load_acquire(&s->finish)) {
        uint64_t now;

        wait_for_work(s->spool.ring, wait_ns);
        if (s->engine == &cpprof__engine_perf || cpprof__sampler_is_refused())
            cpprof__threads_tend_events();
        wait_ns = drain(s) ? DRAIN_NS_MIN : wait_ns * 2;
        if (wait_ns > SCAN_NS)
            wait_ns = SCAN_NS;
        now = cpprof__clock_ns(CLOCK_MONOTONIC);
        if (!s->sampling_ended && (!n_scans || now - scanned >= SCAN_NS)) {
            scanned = now;
            scan(s, n_scans++);
        }
        if (!s->sampling_ended && cpprof__spool_is_stopped(&s->spool) &&
            load_acquire(&s->started)) {
            cpprof__session_end_sampling(s);
            if (s->at_scan) /* it sees that the recorder stops */
                s->at_scan();
        }
        if (cpprof__own_thread_must_leave())
            return true;
    }
    cpprof__session_end_sampling(s);
    if (s->last && !cpprof__own_keeper_run(s->last))
        s->last();
    return false;
}

int
cpprof__session_start_drainer(struct cpprof__session *s)
{
    int failed;

    sem_init(&s->drainer_is_up, 0, 0);
    s->drainer = (struct cpprof__own_thread){
        .name = "cpprof",
        .run = drainer,
        .arg = s,
        .wake = &s->spool.ring->wake,
        .flags = CPPROF__OWN_TABLE,
    };
    failed = cpprof__own_thread_start(&s->drainer);
    while (!failed && sem_wait(&s->drainer_is_up))
        continue;
    return failed;
}
