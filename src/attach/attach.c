/* SPDX-License-Identifier: MIT */
/*
 * Attach and detach: what the variable CPPROF would have begun at the start of
 * the process, begun later and ended while the process goes on.
 *
 * Both do their work on a thread of ours with a table of descriptors of its
 * own, so that no file of ours is ever open in the program's. Who called waits
 * for that, and then for the threads that end. It has `lock` meanwhile. As long
 * as it is attached a thread of ours (the watch) looks for modules that came,
 * and for the recorder: when that says so, or was killed, the process detaches
 * by itself.
 *
 * Order. Entries are patched before anything is on: until then they lead
 * through a jump to where they led before. At the end profiles stop first, then
 * entries are put back, then the handler. Threads that are just inside a hook
 * stay there for as long as they want: its code and what it reads stay.
 */
#include <cpprof/attach.h>

#include "arch/atomic.h"
#include "arch/clock.h"
#include "attach/patch.h"
#include "base/status.h"
#include "collect/heap/heap_owner.h"
#include "collect/process/environment.h"
#include "collect/runtime/loader.h"
#include "collect/runtime/next.h"
#include "collect/runtime/own_list.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/periodic.h"
#include "collect/runtime/proc.h"
#include "collect/runtime/real.h"
#include "collect/runtime/uncancelled.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/tables/mirror.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/waits/wait_buckets.h"
#include "collect/signal/waits/waits.h"
#include "collect/store/spool.h"
#include "collect/threads/action.h"
#include "interpose/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunables. Who calls waits so long for another who does; for a moment in which
 * nobody forks, to put entries back; and for threads of ours to end. */
#define TURN_NS (10 * CPPROF__NS_PER_S)
#define END_NS  (5 * CPPROF__NS_PER_S)
#define LOOK_NS 1000000

/* Tunable. For so long another thread of a child may have the loader's lock. */
#define LOADER_NS CPPROF__NS_PER_S

/* Tunables. New modules, and the end of the recorder, are seen so soon; all are
 * looked at again so long after they came, for entries that were bound
 * meanwhile. */
#define WATCH_NS    100000000u
#define AGAIN_TURNS 10u

/* Tunable. A dump of threads has no recorder that could be seen to end. It is
 * written when it is detached from: 0.1 s later, or never, if the command was
 * killed. Then it is over after this many. */
#define DUMP_TURNS (10 * CPPROF__NS_PER_S / WATCH_NS)

static struct cpprof__own_lock lock; /* guards what follows */
static bool is_attached;
static bool is_patched;
static bool is_dump;  /* of threads and nothing else, for no recorder */
static bool is_alone; /* no thread of ours was there before */
static unsigned parts;
static uintptr_t malloc_before; /* cpprof__heap_our_malloc */

/* The recorder's, mapped as long as it is attached; or NULL. Neither a right
 * nor a descriptor is needed to look at it. */
static const uint32_t *control;

/* The command sees by the begin of this name, which others of ours have, too,
 * that it is still attached. ORDER: src/cli/record/attached.c. */
#define WATCH_THREAD "cpprof-attach"

static struct cpprof__periodic watch;
static bool has_watch;
static bool is_childs; /* made by fork, with the parent's recording */
static uint32_t n_turns, look_again_at;

/* The command's thread has this name, as it is made in its stead and not by the
 * program. ORDER: GUEST_THREAD of src/cli/attach/guest.h. */
#define COMMAND_THREAD "cpprof-call"

static int32_t caller; /* the command's thread that waits for the call; or 0 */

/* ---- the recorder ----------------------------------------------------- */

static void
forget_recorder(void)
{
    if (control)
        munmap((void *)(uintptr_t)control, CPPROF__SPOOL_CONTROL_BYTES);
    control = NULL;
}

static enum cpprof_status
see_recorder(const char *directory, struct cpprof_error *error)
{
    forget_recorder(); /* a child has its parent's */
    control = directory ? cpprof__spool_control(directory) : NULL;
    if (!directory || (control && !cpprof__control_is_stopped(control)))
        return CPPROF_OK;
    if (!control)
        return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s/control: %s",
                            directory, strerror(errno));
    forget_recorder();
    return cpprof__fail(error, CPPROF_SYSTEM, ENOENT,
                        "nobody records in %s any more", directory);
}

/* ---- the end ---------------------------------------------------------- */

/* False: some entries still lead to us, and from there to where they led. */
static bool
put_back(void)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + END_NS;

    if (!is_patched)
        return true;
    cpprof__heap_our_malloc = malloc_before;
    while (
        (is_patched = !cpprof__heap_put_back() || !cpprof__patch_restore()) &&
        cpprof__now_ns(CLOCK_MONOTONIC) < until)
        cpprof__sleep_ns(LOOK_NS);
    return !is_patched;
}

/* Are there threads of ours, beside the command's, that have not said that they
 * end? */
static bool
has_others_at_work(void)
{
    return cpprof__own_threads() > (caller ? 1u : 0u);
}

/* Not to be called on a thread of ours. False: they have not ended in time. In
 * the end it is enough that they have done all they had to: libc then gives
 * back each block that they have freed by a lock, for which many threads that
 * allocate make them wait for seconds. */
static bool
wait_for_own_threads(void)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + END_NS;

    while (is_alone && cpprof__own_list_has_others(caller)) {
        if (cpprof__now_ns(CLOCK_MONOTONIC) >= until)
            return !has_others_at_work();
        cpprof__sleep_ns(LOOK_NS);
    }
    return true;
}

/* The watch may be the caller: then nobody joins it. */
static void
stop_watch(void)
{
    if (!has_watch)
        return;
    has_watch = false;
    cpprof__periodic_stop(&watch);
    if (pthread_equal(watch.thread.thread, pthread_self()))
        cpprof__real_pthread_detach(pthread_self());
}

static int32_t tried_loader; /* pid of the process */

static bool
wait_for_loader(void *arg)
{
    (void)arg;
    cpprof__loader_wait();
    return false;
}

/* May the loader be asked in this process? In a child a thread of ours finds it
 * out, once; it is not there any more when that is true. */
static bool
try_loader(void)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + LOADER_NS;
    bool has_others = cpprof__own_list_has_others(caller);
    int32_t me = (int32_t)getpid();

    if (cpprof__loader_may_be_asked())
        return true;
    if (tried_loader == me ||
        cpprof__own_thread_detached(wait_for_loader, NULL, 0))
        return false;
    tried_loader = me;
    while ((!cpprof__loader_may_be_asked() ||
            (!has_others && cpprof__own_list_has_others(caller))) &&
           cpprof__now_ns(CLOCK_MONOTONIC) < until)
        cpprof__sleep_ns(LOOK_NS);
    return cpprof__loader_may_be_asked();
}

static enum cpprof_status
end(struct cpprof_error *error)
{
    enum cpprof_status status;
    bool is_back;

    stop_watch();
    status = cpprof__environment_detach(error);
    is_back = put_back();
    cpprof__environment_on_child(NULL);
    cpprof__action_remove();
    /* As long as it is mapped the recorder knows that something is left. */
    if (is_back)
        forget_recorder();
    is_attached = false;
    if (!is_back && status == CPPROF_OK)
        status = cpprof__fail(error, CPPROF_SYSTEM, ETIMEDOUT,
                              "not all entries could be put back: the process "
                              "forks all the time, or is a child");
    return status;
}

/* ---- the watch -------------------------------------------------------- */

/* Who attaches or detaches has the lock, and waits for this thread. */
static void
end_by_itself(void)
{
    struct cpprof_error ignored;

    if ((is_childs && cpprof__proc_had_filter()) ||
        !cpprof__own_lock_take_until(&lock, 0))
        return;
    try_loader();
    end(&ignored);
    cpprof__own_lock_give(&lock);
}

/* No thread can begin any more in this process, so none could detach later:
 * the program's own does it now, after a change of namespaces. */
static void
end_for_lost_watch(void)
{
    CPPROF__UNCANCELLED;

    if (!has_watch)
        return;
    end_by_itself();
    wait_for_own_threads();
}

static void
look_at_modules(void)
{
    bool again = n_turns == look_again_at;

    if (!is_patched || !(again || cpprof__patch_has_news()))
        return;
    if (!cpprof__patch_all(parts))
        look_again_at = n_turns + 1;
    else if (!again)
        look_again_at = n_turns + AGAIN_TURNS;
}

static void
turn(struct cpprof__periodic *p)
{
    n_turns++;
    look_at_modules();
    /* At the first turn who has started it may not know it yet. */
    if (n_turns < 2 || !(cpprof__control_is_stopped(control) ||
                         (is_dump && n_turns > DUMP_TURNS)))
        return;
    end_by_itself();
    if (is_childs && cpprof__proc_had_filter())
        p->finish = 1;
}

static enum cpprof_status
start_watch(struct cpprof_error *error)
{
    int failed;

    watch = (struct cpprof__periodic){.name = WATCH_THREAD,
                                      .turn = turn,
                                      .period_ns = WATCH_NS,
                                      .flags = CPPROF__OWN_TABLE,
                                      .lost = end_for_lost_watch};
    n_turns = 0;
    look_again_at = AGAIN_TURNS;
    failed = cpprof__periodic_start(&watch);
    has_watch = !failed;
    return failed ? cpprof__fail(error, CPPROF_SYSTEM, failed,
                                 "pthread_create: %s", strerror(failed))
                  : CPPROF_OK;
}

/* ---- the beginning ---------------------------------------------------- */

static unsigned
parts_for(uint32_t kinds)
{
    return CPPROF__PATCH_PROCESS |
           (kinds & CPPROF__KIND_HEAP ? CPPROF__PATCH_HEAP : 0) |
           (kinds & (CPPROF__KIND_BLOCK | CPPROF__KIND_MUTEX)
                ? CPPROF__PATCH_WAITS
                : 0);
}

/* Blocks of a sanitizer's allocator, and of one that the program calls without
 * an entry, are not all seen. */
static enum cpprof_status
check_heap(bool sanitized, struct cpprof_error *error)
{
    const struct link_map *module = NULL;
    char name[256];

    if (sanitized)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heap: the program has a sanitizer's malloc");
#if CPPROF__HAS_ALLOCATOR
    cpprof__heap_our_malloc = (uintptr_t)cpprof__real(malloc);
#endif
    cpprof__first_symbol("malloc", &module);
    if ((module && !*module->l_name) || cpprof__heap_owner(name, sizeof name))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heap: the program has a malloc of its own");
    return CPPROF_OK;
}

static void
patch(void)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + CPPROF__NS_PER_S / 10;

    cpprof__heap_begin_anew();
    cpprof__wait_buckets_forked();
    is_patched = true;
    while (!cpprof__patch_all(parts) && cpprof__now_ns(CLOCK_MONOTONIC) < until)
        cpprof__sleep_ns(LOOK_NS);
    if (parts & CPPROF__PATCH_HEAP)
        cpprof__heap_patch();
}

/* One that was preloaded or linked may have been used. */
static enum cpprof_status
check_use(struct cpprof_error *error)
{
    return cpprof__heap_set_rate(-1) || !cpprof__waits_are_off()
               ? cpprof__fail(error, CPPROF_BUSY, 0,
                              "the program profiles itself")
               : CPPROF_OK;
}

static enum cpprof_status
take_places(uint32_t kinds, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    enum cpprof__patch_state state;
    bool sanitized;

    parts = parts_for(kinds);
    malloc_before = cpprof__heap_our_malloc;
    state = cpprof__patch_begin(&sanitized);
    if (state == CPPROF__PATCH_CANNOT)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "the process forks all the time");
    if (state == CPPROF__PATCH_NOT_NEEDED)
        return check_use(error);
    if (parts & CPPROF__PATCH_HEAP)
        status = check_heap(sanitized, error);
    if (status == CPPROF_OK)
        patch();
    else
        cpprof__heap_our_malloc = malloc_before;
    return status;
}

/* A child ends its recording as its parent does, and by itself. A dump is not
 * of it. A recording that had not begun when it was forked, or had ended, is
 * over for it at once. A filter may kill for the calls that the end makes, so
 * in a program that has announced one entries stay patched. */
static void
watch_in_child(void)
{
    struct cpprof_error ignored;

    if (cpprof__proc_had_filter())
        return;
    if (is_dump || !cpprof__environment_is_on()) {
        end_by_itself();
    } else if (!has_watch) {
        is_attached = true;
        start_watch(&ignored);
    }
}

static void
in_child(void)
{
    has_watch = false;
    tried_loader = 0;
    is_childs = true;
    cpprof__own_lock_in_child(&lock);
}

static enum cpprof_status
begin(const char *config, struct cpprof_error *error)
{
    static bool is_registered;
    struct cpprof_error ignored;
    const char *directory;
    enum cpprof_status status;
    uint32_t kinds;

    if (is_attached || cpprof__environment_is_on())
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "cpprof profiles this process already");
    status = cpprof__environment_attach_read(config, &kinds, &directory, error);
    if (status != CPPROF_OK)
        return status;
    status = see_recorder(directory, error);
    if (status != CPPROF_OK)
        return status;
    is_dump = !control && kinds &&
              !(kinds & ~(CPPROF__KIND_THREADS | CPPROF__KIND_THREADLEAK));
    cpprof__use();
    cpprof__maps_are_locked(cpprof__proc_locks_memory() &&
                            !cpprof__proc_has_own_filter());
    if (!is_registered)
        is_registered = !pthread_atfork(NULL, NULL, in_child);
    is_childs = false;
    cpprof__environment_on_child(watch_in_child);
    status = take_places(kinds, error);
    if (status != CPPROF_OK) {
        cpprof__environment_on_child(NULL);
        forget_recorder();
        return status;
    }
    status = cpprof__environment_attach(error);
    if (status == CPPROF_OK)
        status = start_watch(error);
    is_attached = true;
    if (status != CPPROF_OK)
        end(&ignored);
    return status;
}

/* ---- the calls -------------------------------------------------------- */

struct call {
    const char *config; /* NULL: detach */
    int32_t caller;     /* as above */
    enum cpprof_status status;
    struct cpprof_error error;
};

static void
begin_call(void *arg)
{
    struct call *call = arg;

    call->status = begin(call->config, &call->error);
}

static void
end_call(void *arg)
{
    struct call *call = arg;

    call->status = end(&call->error);
}

static void
on_own_thread(void (*f)(void *arg), struct call *call)
{
    if (!cpprof__own_thread_run_new(f, call, CPPROF__OWN_TABLE))
        f(call);
}

static void
attach(struct call *call)
{
    if (!is_attached) {
        wait_for_own_threads(); /* of a time before */
        is_alone = !cpprof__own_list_has_others(caller);
    }
    on_own_thread(begin_call, call);
    if (!is_attached)
        wait_for_own_threads();
}

static void
detach(struct call *call)
{
    if (!is_attached && !is_patched)
        return;
    on_own_thread(end_call, call);
    if (!wait_for_own_threads() && call->status == CPPROF_OK)
        call->status = cpprof__fail(&call->error, CPPROF_SYSTEM, ETIMEDOUT,
                                    "a thread of cpprof has not ended yet");
}

static void
carry_out(struct call *call)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + TURN_NS;
    bool has_loader;

    if (!cpprof__own_lock_take_until(&lock, until)) {
        call->status = cpprof__fail(&call->error, CPPROF_BUSY, 0,
                                    "another is attaching or detaching");
        return;
    }
    /* Not before: who has the lock waits for threads of ours to end, and must
     * not wait for one that waits for the lock, of a recorder that was killed.
     */
    caller = call->caller;
    if (caller)
        cpprof__own_list_begin(false, NULL);
    has_loader = try_loader();
    /* The watch would do it soon: the process was stopped until now. */
    if (!call->config || (is_attached && cpprof__control_is_stopped(control)))
        detach(call);
    if (call->config && has_loader) {
        call->status = CPPROF_OK;
        attach(call);
    } else if (call->config) {
        call->status = cpprof__fail(&call->error, CPPROF_UNSUPPORTED, 0,
                                    "it was forked while another thread had a "
                                    "lock of the loader, which is never free "
                                    "again here");
    }
    if (caller)
        cpprof__own_list_end();
    caller = 0;
    cpprof__own_lock_give(&lock);
}

static int
errno_of(const struct call *call)
{
    switch (call->status) {
    case CPPROF_OK:
        return 0;
    case CPPROF_INVALID:
        return EINVAL;
    case CPPROF_BUSY:
        return EBUSY;
    case CPPROF_UNSUPPORTED:
        return ENOTSUP;
    case CPPROF_NOMEM:
        return ENOMEM;
    default:
        return call->error.sys ? call->error.sys : EIO;
    }
}

static bool
is_command_thread(void)
{
    char name[16] = "";

    return !prctl(PR_GET_NAME, name) && !strcmp(name, COMMAND_THREAD);
}

static int
run(const char *config, char *message, size_t size)
{
    struct call call = {.config = config, .status = CPPROF_OK};
    CPPROF__UNCANCELLED;

    if (is_command_thread())
        call.caller = (int32_t)syscall(SYS_gettid);
    carry_out(&call);
    if (message && size)
        snprintf(message, size, "%s",
                 call.status == CPPROF_OK ? "" : call.error.text);
    return errno_of(&call);
}

CPPROF_API int
cpprof_attach(const char *config, char *message, size_t size)
{
    return run(config ? config : "no config", message, size);
}

CPPROF_API int
cpprof_detach(char *message, size_t size)
{
    return run(NULL, message, size);
}
