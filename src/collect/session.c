/* SPDX-License-Identifier: MIT */
/*
 * A session starts its parts in this order: memory, engine, handler, drainer
 * thread, threads; and stops them in the opposite one. Only the state is
 * changed under `lock`; what takes long (symbols, writing) happens between the
 * states, so that a fork never waits for it.
 */
#include "collect/session.h"

#include "arch/atomic.h"
#include "base/status.h"
#include "collect/action.h"
#include "collect/cpu_profile.h"
#include "collect/drain.h"
#include "collect/dump.h"
#include "collect/exempt.h"
#include "collect/labels.h"
#include "collect/own_threads.h"
#include "collect/real.h"
#include "collect/recorded.h"
#include "collect/signal/sampler.h"
#include "collect/spool.h"
#include "collect/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunables. The drainer wakes this often while samples come, less and less
 * often (down to the scan's pace) while none do, and at once when the ring is
 * half full. More often costs time, less often a larger ring. */
#define DRAIN_NS_MIN 100000000u
/* Threads nobody announced are found this late; a descriptor that the program
 * closed is missed sooner, as long as the threads are few. */
#define SCAN_NS         1000000000u
#define SCAN_NS_PERF    200000000u
#define SCAN_FEW        256
#define FULL_SCAN_EVERY 10
/* Stop waits so long for handlers to leave; one that is held by a debugger
 * then keeps its memory. */
#define QUIET_TRIES 2000
#define QUIET_NS    1000000

/* For libdw, which recurses over DIEs; touched as far as it is used. */
#define DRAINER_STACK (1024 * 1024)

enum state { IDLE, STARTING, RUNNING, STOPPING };

struct session {
    struct cpprof__session_plan plan;
    const struct cpprof__engine *engine;
    struct cpprof__spool spool;

    pthread_mutex_t drain_lock; /* guards what follows */
    struct cpprof__drain drain;
    struct cpprof__labels_reader labels_reader;
    struct cpprof__cpu_profile profile;
    bool has_profile; /* begun */
    enum cpprof_status failed;
    struct cpprof_error error;

    bool unloaded; /* a module, since the maps were last read */
    uint64_t cpu_start_ns;
    pthread_t drainer;
    sem_t drainer_is_up;
    int32_t drainer_tid;
    bool finish;  /* the drainer is to end */
    bool ended;   /* it did, and wrote the profile */
    bool started; /* all threads are armed */
    bool halted;  /* sampling ended; what was sampled is still there */
};

static pthread_mutex_t loader_lock =
    PTHREAD_MUTEX_INITIALIZER; /* before lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_child;           /* made by fork, with the parent's modules */
static enum state state;        /* guarded by lock */
static struct session *session; /* set while RUNNING or STOPPING */
static uint32_t last_generation;
static __thread sigset_t mask_before_fork;

static uint64_t
now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- samples ---------------------------------------------------------- */

/* Begin the profile when there is something to put in it: at a full store, or
 * at the end. */
static void
begin_profile(struct session *s)
{
    struct cpprof_cpu_options options = s->plan.options;

    if (s->has_profile || s->plan.directory)
        return;
    s->has_profile = true;
    /* Nothing to look up: most forked children end without a sample, and must
     * not ask for the loader's lock for nothing. */
    if (!s->spool.store.head->total)
        options.symbolize = CPPROF_SYMBOLIZE_NONE;
    s->failed = cpprof__cpu_profile_begin(&s->profile, s->spool.head, &options,
                                          s->plan.writer, &s->error);
}

static void
write_store(struct session *s)
{
    begin_profile(s);
    if (!s->plan.directory && s->failed == CPPROF_OK)
        cpprof__cpu_profile_add(&s->profile, &s->spool.store);
}

/* The store is full: its samples go out, and the mappings of now into the next
 * one. */
static bool
next_store(struct cpprof__drain *drain)
{
    struct session *s = drain->ctx;

    write_store(s);
    if (!cpprof__spool_next_store(&s->spool))
        return false;
    cpprof__mappings_init(&drain->mappings, drain->store, true);
    cpprof__mappings_refresh(&drain->mappings);
    return true;
}

static uint64_t
lost(const struct session *s)
{
    return load_relaxed(&s->spool.ring->lost) + s->drain.n_lost;
}

static void
update_head(struct session *s)
{
    struct cpprof__spool_head *head = s->spool.head;

    store_relaxed(&head->n_records, s->drain.n_records);
    store_relaxed(&head->n_threads, cpprof__threads_seen());
    if (s->halted)
        return;
    store_relaxed(&head->cpu_ns,
                  now_ns(CLOCK_PROCESS_CPUTIME_ID) - s->cpu_start_ns);
    store_relaxed(&head->last_mono_ns, now_ns(CLOCK_MONOTONIC));
}

/* Under drain_lock: returns how many samples came. */
static uint64_t
drain_locked(struct session *s)
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
drain(struct session *s)
{
    uint64_t n;

    pthread_mutex_lock(&s->drain_lock);
    n = drain_locked(s);
    pthread_mutex_unlock(&s->drain_lock);
    return n;
}

/* ---- the end of sampling ---------------------------------------------- */

static void
wait_until_quiet(void)
{
    const struct timespec pause = {0, QUIET_NS};
    int i;

    for (i = 0; i < QUIET_TRIES; i++) {
        if (!__atomic_load_n(&cpprof__sampler.n_inside, __ATOMIC_SEQ_CST))
            return;
        nanosleep(&pause, NULL);
    }
}

/* After this no handler touches the session's memory. */
static void
halt(struct session *s)
{
    if (s->halted)
        return;
    cpprof__threads_end();
    __atomic_store_n(&cpprof__sampler.ring, NULL, __ATOMIC_SEQ_CST);
    wait_until_quiet();
    drain(s);
    s->halted = true;
    store_release(&s->spool.head->state, (uint32_t)CPPROF__SPOOL_ENDED);
}

/* ---- the drainer ------------------------------------------------------ */

static void
wait_for_work(struct cpprof__ring *ring, uint64_t wait_ns)
{
    struct timespec timeout = {(time_t)(wait_ns / 1000000000u),
                               (long)(wait_ns % 1000000000u)};

    syscall(SYS_futex, &ring->wake, FUTEX_WAIT, 0, &timeout, NULL, 0);
    store_release(&ring->wake, 0u);
}

static void
write_end(struct session *s)
{
    write_store(s);
    if (!s->plan.directory && s->failed == CPPROF_OK)
        s->failed = cpprof__cpu_profile_end(&s->profile, s->spool.head, lost(s),
                                            &s->error);
}

/* By the drainer, or by who stops the session when that has left. */
static void
end(struct session *s)
{
    if (s->ended)
        return;
    halt(s);
    write_end(s);
    s->ended = true;
}

/*
 * The loader's lock is not reset in a forked child: it must not be held by a
 * thread of ours when the program forks, and a child must not ask for it, since
 * another thread of the parent may have held it. (The unwinder needs this only
 * to notice what was unloaded behind our back.)
 */
static void
refresh_modules(void)
{
    if (is_child)
        return;
    pthread_mutex_lock(&loader_lock);
    cpprof__unwind_refresh_modules();
    pthread_mutex_unlock(&loader_lock);
}

void
cpprof__session_refresh_modules(void)
{
    refresh_modules();
}

static void
scan(uint32_t n_scans)
{
    cpprof__action_check();
    cpprof__recorded_tick();
    refresh_modules();
    cpprof__threads_scan(n_scans % FULL_SCAN_EVERY == 1);
}

static uint64_t
scan_interval(const struct session *s)
{
    return s->engine == &cpprof__engine_perf &&
                   cpprof__threads_seen() <= SCAN_FEW
               ? SCAN_NS_PERF
               : SCAN_NS;
}

static void *
drainer(void *arg)
{
    struct session *s = arg;
    uint64_t wait_ns = DRAIN_NS_MIN, scanned = now_ns(CLOCK_MONOTONIC);
    uint32_t n_scans = 0;

    cpprof__heap_self.exempt++;
    cpprof__own_thread_begin();
    prctl(PR_SET_NAME, "cpprof");
    s->drainer_tid = (int32_t)syscall(SYS_gettid);
    sem_post(&s->drainer_is_up);
    while (!load_acquire(&s->finish)) {
        uint64_t now;

        wait_for_work(s->spool.ring, wait_ns);
        wait_ns = drain(s) ? DRAIN_NS_MIN : wait_ns * 2;
        if (wait_ns > scan_interval(s))
            wait_ns = scan_interval(s);
        now = now_ns(CLOCK_MONOTONIC);
        if (!s->halted && (!n_scans || now - scanned >= scan_interval(s))) {
            scanned = now;
            scan(n_scans++);
        }
        if (cpprof__spool_is_stopped(&s->spool) && load_acquire(&s->started))
            halt(s);
        if (cpprof__own_threads_are_alone())
            break;
    }
    if (load_acquire(&s->finish))
        end(s);
    cpprof__own_thread_end();
    return NULL;
}

/* All signals stay blocked in it: they are the program's. */
static int
start_drainer(struct session *s)
{
    sigset_t all, saved;
    pthread_attr_t attr;
    int failed;

    sem_init(&s->drainer_is_up, 0, 0);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, DRAINER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    cpprof__own_threads_mask(&saved);
    failed = cpprof__real_pthread_create(&s->drainer, &attr, drainer, s);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attr);
    while (!failed && sem_wait(&s->drainer_is_up))
        continue;
    return failed;
}

/* ---- start ------------------------------------------------------------ */

static enum cpprof_status
check_options(const struct cpprof_cpu_options *options,
              struct cpprof_cpu_options *checked, struct cpprof_error *error)
{
    if (!checked->rate_hz)
        checked->rate_hz = 100;
    if (!checked->max_depth)
        checked->max_depth = 128;
    if (checked->rate_hz > 10000)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "rate %u Hz is outside 1 to 10000",
                            checked->rate_hz);
    if (checked->max_depth > CPPROF__MAX_DEPTH)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "stack depth %u is outside 1 to %u",
                            checked->max_depth, CPPROF__MAX_DEPTH);
    if ((unsigned)checked->engine > CPPROF_ENGINE_ITIMER)
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown engine %d",
                            (int)checked->engine);
    if ((unsigned)checked->symbolize > CPPROF_SYMBOLIZE_NONE)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "unknown symbolization %d",
                            (int)checked->symbolize);
    if (checked->flags &
        ~(CPPROF_CPU_NO_LABELS | CPPROF_CPU_LEGACY | CPPROF_CPU_NO_DECOYS))
        return cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags 0x%x",
                            checked->flags);
    (void)options;
    return CPPROF_OK;
}

static void
fill_head(struct session *s)
{
    struct cpprof__spool_head *head = s->spool.head;

    head->rate_hz = s->plan.options.rate_hz;
    head->period_ns = 1000000000u / s->plan.options.rate_hz;
    snprintf(head->engine, sizeof head->engine, "%s", s->engine->name);
    head->user_only =
        s->engine == &cpprof__engine_perf && cpprof__perf_is_user_only();
    head->start_ns = now_ns(CLOCK_REALTIME);
    head->start_mono_ns = head->last_mono_ns = now_ns(CLOCK_MONOTONIC);
    s->cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    store_release(&head->state, (uint32_t)CPPROF__SPOOL_RUNNING);
}

static void
set_up_drain(struct session *s)
{
    pthread_mutex_init(&s->drain_lock, NULL);
    cpprof__labels_reader_begin(&s->labels_reader);
    s->drain.ring = s->spool.ring;
    s->drain.store = &s->spool.store;
    s->drain.live = true;
    s->drain.next_store = next_store;
    s->drain.ctx = s;
    cpprof__mappings_init(&s->drain.mappings, &s->spool.store, true);
    cpprof__mappings_refresh(&s->drain.mappings);
}

static void
free_drain(struct session *s)
{
    cpprof__labels_reader_end(&s->labels_reader);
    cpprof__drain_free(&s->drain);
}

static void
set_up_sampler(struct session *s)
{
    struct cpprof__sampler *sampler = &cpprof__sampler;

    if (!++last_generation)
        last_generation = 1;
    sampler->max_depth = s->plan.options.max_depth;
    sampler->period_ns = s->spool.head->period_ns;
    sampler->labels = !(s->plan.options.flags & CPPROF_CPU_NO_LABELS);
    store_relaxed(&sampler->generation, last_generation);
    __atomic_store_n(&sampler->ring, s->spool.ring, __ATOMIC_SEQ_CST);
}

static enum cpprof_status
start_sampling(struct session *s, struct cpprof_error *error)
{
    struct cpprof__threads_plan plan;
    int failed;

    failed = cpprof__action_install();
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "sigaction: %s",
                            strerror(failed));
    refresh_modules();
    failed = start_drainer(s);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed, "pthread_create: %s",
                            strerror(failed));
    set_up_sampler(s);
    plan.engine = s->engine;
    plan.period_ns = s->spool.head->period_ns;
    plan.generation = last_generation;
    cpprof__threads_begin(&plan, s->drainer_tid);
    store_relaxed(&s->spool.head->n_threads, cpprof__threads_seen());
    store_release(&s->started, true);
    return CPPROF_OK;
}

static enum cpprof_status
start(const struct cpprof__session_plan *plan, struct session **out,
      struct cpprof_error *error)
{
    struct session *s = calloc(1, sizeof *s);
    enum cpprof_status status;

    if (!s)
        return cpprof__fail_nomem(error);
    s->plan = *plan;
    status = check_options(&plan->options, &s->plan.options, error);
    if (status == CPPROF_OK)
        status = cpprof__engine_choose(
            s->plan.options.engine, s->plan.options.rate_hz, &s->engine, error);
    if (status == CPPROF_OK)
        status = cpprof__spool_make(
            &s->spool, plan->directory,
            cpprof__spool_ring_words(s->plan.options.rate_hz,
                                     s->plan.options.max_depth),
            error);
    if (status == CPPROF_OK) {
        fill_head(s);
        set_up_drain(s);
        status = start_sampling(s, error);
    }
    if (status != CPPROF_OK) {
        free_drain(s);
        cpprof__spool_free(&s->spool, false);
        free(s);
        return status;
    }
    *out = s;
    return CPPROF_OK;
}

static bool
change_state(enum state from, enum state to)
{
    bool changed;

    pthread_mutex_lock(&lock);
    changed = state == from;
    if (changed)
        state = to;
    pthread_mutex_unlock(&lock);
    return changed;
}

static void
close_failed(const struct cpprof_writer *writer)
{
    if (writer->close)
        writer->close(writer->ctx, 1);
}

enum cpprof_status
cpprof__session_start(const struct cpprof__session_plan *plan,
                      struct cpprof_error *error)
{
    enum cpprof_status status;
    struct session *s = NULL;
    CPPROF__EXEMPT;

    if (!change_state(IDLE, STARTING)) {
        close_failed(&plan->writer);
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "cpu profiling already in use");
    }
    status = start(plan, &s, error);
    if (status != CPPROF_OK)
        close_failed(&plan->writer);
    pthread_mutex_lock(&lock);
    session = s;
    state = status == CPPROF_OK ? RUNNING : IDLE;
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- stop ------------------------------------------------------------- */

static enum cpprof_status
finish(struct session *s, struct cpprof_error *error)
{
    enum cpprof_status status;
    bool keep;

    store_release(&s->finish, true);
    cpprof__ring_wake(s->spool.ring);
    /* EDEADLK: this is the drainer, in exit(). */
    pthread_join(s->drainer, NULL);
    end(s);
    sem_destroy(&s->drainer_is_up);
    free_drain(s);
    status = s->failed;
    if (status != CPPROF_OK && error)
        *error = s->error;
    /* An image that brought no sample leaves nothing to read, but for the
     * command's own: its profile is written whatever is in it. */
    keep =
        s->drain.n_records || lost(s) || cpprof__spool_is_of_command(&s->spool);
    pthread_mutex_lock(&lock);
    session = NULL; /* a fork from here on finds nothing to let go of */
    pthread_mutex_unlock(&lock);
    if (__atomic_load_n(&cpprof__sampler.n_inside, __ATOMIC_SEQ_CST))
        return status; /* a handler hangs in there: let it have the memory */
    cpprof__spool_free(&s->spool, keep);
    free(s);
    return status;
}

enum cpprof_status
cpprof__session_stop(struct cpprof_error *error)
{
    enum cpprof_status status;
    CPPROF__EXEMPT;

    if (!change_state(RUNNING, STOPPING))
        return CPPROF_OK;
    status = finish(session, error);
    pthread_mutex_lock(&lock);
    state = IDLE;
    pthread_mutex_unlock(&lock);
    return status;
}

/* Only the process that runs the session may touch its timers; a vfork child
 * has the same memory and another pid. */
static bool
is_ours(void)
{
    return state == RUNNING && session &&
           session->spool.head->pid == (int32_t)syscall(SYS_getpid);
}

/* What was recorded is in its files already; only say that it is complete. */
static void
mark_ended(struct session *s)
{
    store_relaxed(&s->spool.head->last_mono_ns, now_ns(CLOCK_MONOTONIC));
    store_release(&s->spool.head->state, (uint32_t)CPPROF__SPOOL_ENDED);
}

void
cpprof__session_stop_hastily(unsigned seconds)
{
    struct timespec until;
    bool ours = false;

    if (pthread_mutex_trylock(&lock))
        return;
    if (is_ours() && session->plan.directory) {
        mark_ended(session);
    } else if (is_ours()) {
        state = STOPPING;
        ours = true;
    }
    pthread_mutex_unlock(&lock);
    if (!ours)
        return;
    store_release(&session->finish, true);
    cpprof__ring_wake(session->spool.ring);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    if (pthread_timedjoin_np(session->drainer, NULL, &until) != ETIMEDOUT)
        end(session);
}

/* ---- unloading -------------------------------------------------------- */

/*
 * The session cannot end between the look at the state and the work: stop
 * changes the state under `lock` first. The drainer is not waited for: it may
 * be about to load the symbolizer, and the caller may hold the loader's lock.
 */
void
cpprof__session_before_unload(void)
{
    pthread_mutex_lock(&lock);
    if (state == RUNNING && !pthread_mutex_trylock(&session->drain_lock)) {
        drain_locked(session);
        pthread_mutex_unlock(&session->drain_lock);
    }
    pthread_mutex_unlock(&lock);
}

void
cpprof__session_after_unload(void)
{
    cpprof__unwind_forget();
    pthread_mutex_lock(&lock);
    if (state == RUNNING)
        store_release(&session->unloaded, true);
    pthread_mutex_unlock(&lock);
}

/* ---- fork and exec ---------------------------------------------------- */

/* The signal is blocked meanwhile: fork restarts from the beginning for each
 * one that comes, which for a large process never ends. */
void
cpprof__session_fork_prepare(void)
{
    sigset_t set;

    pthread_mutex_lock(&loader_lock);
    pthread_mutex_lock(&lock);
    cpprof__threads_fork_prepare();
    sigemptyset(&set);
    sigaddset(&set, CPPROF__SIGNAL);
    pthread_sigmask(SIG_BLOCK, &set, &mask_before_fork);
}

void
cpprof__session_fork_parent(void)
{
    pthread_sigmask(SIG_SETMASK, &mask_before_fork, NULL);
    cpprof__threads_fork_parent();
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&loader_lock);
}

/* The child lets go of the parent's session: its thread is not here, its
 * memory may have been caught in the middle of a change. */
void
cpprof__session_fork_child(void)
{
    cpprof__sampler.ring = NULL;
    cpprof__sampler.n_inside = 0;
    cpprof__sampler.itimer_base_ns = 0;
    cpprof__threads_fork_child();
    cpprof__action_fork_child();
    if (session)
        cpprof__spool_free(&session->spool, true);
    session = NULL;
    state = IDLE;
    is_child = true;
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&loader_lock, NULL);
    pthread_sigmask(SIG_SETMASK, &mask_before_fork, NULL);
}

/* A signal that is pending because the program blocks it would outlive the
 * exec and end the new image. One that is not ours is put back. */
static void
take_pending(void)
{
    const struct timespec at_once = {0, 0};
    siginfo_t info;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, CPPROF__SIGNAL);
    if (sigtimedwait(&set, &info, &at_once) != CPPROF__SIGNAL)
        return;
    if (info.si_code == SI_USER || info.si_code == SI_TKILL ||
        info.si_code == SI_QUEUE)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid),
                CPPROF__SIGNAL, &info);
}

void
cpprof__session_exec_begin(void)
{
    int saved_errno = errno;

    if (is_ours())
        cpprof__threads_suspend();
    if (cpprof__action_is_ours()) {
        cpprof__dump_exec_begin();
        take_pending();
    }
    cpprof__action_exec_begin();
    errno = saved_errno;
}

void
cpprof__session_exec_failed(void)
{
    int saved_errno = errno;

    cpprof__action_exec_failed();
    if (cpprof__action_is_ours())
        cpprof__dump_exec_failed();
    if (is_ours())
        cpprof__threads_resume();
    errno = saved_errno;
}
