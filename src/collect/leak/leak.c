/* SPDX-License-Identifier: MIT */
/*
 * Makes the two snapshots, on a thread of ours with a table of descriptors of
 * its own, and holds them against each other.
 */
#include "collect/leak/leak.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "base/file.h"
#include "base/status.h"
#include "collect/heap/heap_owner.h"
#include "collect/leak/child.h"
#include "collect/leak/glibc.h"
#include "collect/leak/permit.h"
#include "collect/leak/stop.h"
#include "collect/runtime/own_lock.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"
#include "collect/signal/tables/mirror.h"
#include "collect/threads/tasks.h"
#include "own/folder.h"
#include "own/memory.h"

#include <ctype.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is lost for a moment only, because a thread is at work with it, is not
 * lost for so long. */
#define APART_NS ((uint64_t)CPPROF__NS_PER_S)

/* Tunable: a search that takes longer is given up. */
#define SEARCH_NS (300 * (uint64_t)CPPROF__NS_PER_S)

#define LOOK_NS 100000000

static struct cpprof__own_lock search_lock CPPROF__AT_START;
static bool is_at_end CPPROF__AT_START;

struct search {
    struct cpprof__leaks *leaks;
    struct cpprof_error *error;
    enum cpprof_status status;
    struct cpprof__leak_shared *shared;
    long child; /* pid, or an errno, negative */
};

/* ---- what the child is told -------------------------------------------- */

/* Every hexadecimal number that may be an address: those of the heap of a
 * program that is not position-independent are short. False: there are too
 * many. */
static bool
add_words(struct cpprof__leak_shared *shared, const char *text)
{
    while (*text) {
        size_t n = strspn(text, "0123456789abcdef");

        if (n >= 5 && n <= 16) {
            if (shared->n_words == CPPROF__LEAK_WORDS)
                return false;
            shared->words[shared->n_words++] = strtoull(text, NULL, 16);
        }
        text += n;
        text += *text != 0;
    }
    return true;
}

/* One that asked for an event of each fork: the kernel waits in clone() until
 * somebody has read that (ioctl_userfaultfd(2)). */
#define EVENT_FORK 2u

static bool
is_told_of_forks(const char *text)
{
    const char *api = strstr(text, "API:\t");
    unsigned version, features;

    return api && sscanf(api, "API:\t%x:%x", &version, &features) == 2 &&
           features & EVENT_FORK;
}

/* What epoll keeps, and what userfaultfd asks for, of one descriptor. */
static bool
add_descriptor(struct cpprof__leak_shared *shared, int32_t tid,
               const char *name, struct cpprof__buffer *text)
{
    static const char epoll[] = "anon_inode:[eventpoll]";
    static const char faults[] = "anon_inode:[userfaultfd]";
    char path[340], to[64] = "";
    const char *info;
    bool is_epoll;
    int failed;

    snprintf(path, sizeof path, "/proc/self/task/%d/fd/%s", (int)tid, name);
    if (readlink(path, to, sizeof to - 1) < 0)
        return true;
    is_epoll = !strcmp(to, epoll);
    if (!is_epoll && strcmp(to, faults) != 0)
        return true;
    snprintf(path, sizeof path, "/proc/self/task/%d/fdinfo/%s", (int)tid, name);
    text->n = 0;
    failed = cpprof__file_read(text, path, SIZE_MAX);
    if (failed)
        return failed == ENOENT; /* it was closed */
    info = (const char *)text->data;
    if (is_epoll)
        return add_words(shared, info);
    shared->tells_forks |= is_told_of_forks(info);
    return true;
}

/* The descriptors of a thread; *n: how many these are. */
static bool
add_descriptors(struct cpprof__leak_shared *shared, int32_t tid, size_t *n)
{
    struct cpprof__buffer text = {0};
    struct cpprof__folder fds;
    char path[64];
    const char *name;
    bool done = true;

    snprintf(path, sizeof path, "/proc/self/task/%d/fd", (int)tid);
    if (!cpprof__folder_open(&fds, path))
        return false;
    while (done && (name = cpprof__folder_next(&fds))) {
        *n += *name != '.';
        done = add_descriptor(shared, tid, name, &text);
    }
    done = done && !errno;
    cpprof__folder_close(&fds);
    cpprof__buffer_free(&text);
    return done;
}

/* What the kernel gives back to a program that has nothing else left of it:
 * epoll's data, and that of timers. A main thread that has ended has no
 * descriptors; those of the program are another thread's then. False: they
 * cannot be read. */
static bool
add_kernel_words(struct cpprof__leak_shared *shared)
{
    struct cpprof__buffer text = {0};
    size_t n_threads = 0, n_fds = 0, i;
    int32_t *tids = cpprof__tasks(NULL, 0, &n_threads);
    bool done = tids && add_descriptors(shared, shared->pid, &n_fds);

    /* A thread that ends meanwhile is none. */
    for (i = 0; done && !n_fds && i < n_threads; i++)
        done = add_descriptors(shared, tids[i], &n_fds) || !n_fds;
    cpprof__free(tids);
    if (done && !cpprof__file_read(&text, "/proc/self/timers", SIZE_MAX))
        done = add_words(shared, (const char *)text.data);
    cpprof__buffer_free(&text);
    return done;
}

static bool
describe(struct cpprof__leak_shared *shared)
{
    struct cpprof__buffer maps = {0};
    const char *name;
    bool done;

    shared->pid = (int32_t)getpid();
    shared->walks = cpprof__leak_is_glibc(&name);
    shared->not_ours[0].start = (uintptr_t)cpprof__heap.head;
    shared->not_ours[0].end =
        (uintptr_t)cpprof__heap.head + cpprof__heap_bytes();
    shared->not_ours[2].start = (uintptr_t)cpprof__mirror_head();
    if (shared->not_ours[2].start)
        shared->not_ours[2].end =
            shared->not_ours[2].start + cpprof__mirror_plan.n_bytes;
    done = add_kernel_words(shared) && cpprof__proc_maps(&maps) &&
           maps.n < sizeof shared->maps;
    if (done) {
        memcpy(shared->maps, maps.data, maps.n);
        shared->n_maps = maps.n;
    }
    cpprof__buffer_free(&maps);
    return done;
}

/* ---- a snapshot -------------------------------------------------------- */

/* No signal at its end: it is no child that wait() knows. */
static void
make_child(struct cpprof__leak_shared *shared, void *arg)
{
    struct search *s = arg;
    long pid = syscall(SYS_clone, CLONE_UNTRACED, NULL, NULL, NULL, 0);

    if (!pid)
        cpprof__leak_child(shared);
    s->child = pid < 0 ? -errno : pid;
}

static enum cpprof_status
fail_child(struct search *s)
{
    static const char *const why[] = {
        [CPPROF__LEAK_DIED] = "the child that searched ended before its time",
        [CPPROF__LEAK_FOUND] = "",
        [CPPROF__LEAK_NO_MEMORY] = "no memory for the search",
        [CPPROF__LEAK_NO_MAPS] = "/proc/self/maps or pagemap cannot be read",
        [CPPROF__LEAK_NO_PAGES] =
            "memory that is shared, or that children do not get "
            "(MADV_DONTFORK), cannot be read",
    };

    return cpprof__fail(s->error, CPPROF_UNSUPPORTED, 0, "heapleak: %s",
                        why[load_acquire(&s->shared->end)]);
}

/* Until the child has ended; it is killed when we have to leave. */
static enum cpprof_status
wait_for_child(struct search *s)
{
    uint64_t until = cpprof__now_ns(CLOCK_MONOTONIC) + SEARCH_NS;
    const struct timespec look = {0, LOOK_NS};
    bool is_killed = false;
    int status;

    for (;;) {
        long got =
            syscall(SYS_wait4, s->child, &status, __WALL | WNOHANG, NULL);

        if (got == s->child || (got < 0 && errno == ECHILD))
            break;
        if (!is_killed && (cpprof__own_thread_must_leave() ||
                           cpprof__now_ns(CLOCK_MONOTONIC) > until)) {
            syscall(SYS_kill, s->child, SIGKILL);
            is_killed = true;
        }
        syscall(SYS_futex, &s->shared->end, FUTEX_WAIT, CPPROF__LEAK_DIED,
                &look, NULL, 0);
        if (load_acquire(&s->shared->end))
            syscall(SYS_sched_yield);
    }
    if (is_killed)
        return cpprof__fail(s->error, CPPROF_BUSY, 0,
                            "heapleak: the search was given up");
    s->leaks->cpu_ns += s->shared->cpu_ns;
    return load_acquire(&s->shared->end) == CPPROF__LEAK_FOUND ? CPPROF_OK
                                                               : fail_child(s);
}

static enum cpprof_status
fail_stop(struct search *s)
{
    const struct cpprof__leak_shared *shared = s->shared;

    if (shared->stop == CPPROF__STOP_REFUSED)
        return cpprof__fail(s->error, CPPROF_UNSUPPORTED, shared->sys,
                            "heapleak: something seems lost, but threads may "
                            "not be stopped to make sure: ptrace: %s",
                            strerror(shared->sys));
    if (shared->stop == CPPROF__STOP_TOO_MANY)
        return cpprof__fail(s->error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: there are too many threads");
    return cpprof__fail(s->error, CPPROF_BUSY, 0,
                        "heapleak: thread %d did not come to a place where it "
                        "may be stopped",
                        shared->late_tid);
}

/* One of them, with or without a stop. */
static enum cpprof_status
take(struct search *s, bool stops)
{
    enum cpprof_status status;

    s->shared = mmap(NULL, sizeof *s->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->shared == MAP_FAILED) {
        s->shared = NULL;
        return cpprof__fail_nomem(s->error);
    }
    if (!describe(s->shared))
        return cpprof__fail(s->error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: what the kernel keeps cannot be read "
                            "(/proc/self: maps, fd, fdinfo)");
    if (s->shared->tells_forks)
        return cpprof__fail(s->error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: the program is told of forks "
                            "(userfaultfd)");
    s->child = 0;
    if (stops && !cpprof__leak_stopped(s->shared, make_child, s)) {
        status = fail_stop(s);
        if (s->child > 0) {
            syscall(SYS_kill, s->child, SIGKILL);
            syscall(SYS_wait4, s->child, NULL, __WALL, NULL);
        }
        return status;
    }
    if (!stops) {
        cpprof__leak_look_at_threads(s->shared);
        make_child(s->shared, s);
    }
    if (s->child < 0)
        return cpprof__fail(s->error, CPPROF_UNSUPPORTED, (int)-s->child,
                            "heapleak: clone: %s", strerror((int)-s->child));
    return wait_for_child(s);
}

static void
drop(struct search *s)
{
    if (s->shared)
        munmap(s->shared, sizeof *s->shared);
    s->shared = NULL;
}

/* ---- both -------------------------------------------------------------- */

/* Those that were lost at first, by their numbers. */
static enum cpprof_status
keep_lost(struct search *s)
{
    const struct cpprof__leak_shared *shared = s->shared;
    struct cpprof__leaks *leaks = s->leaks;
    uint32_t i;

    leaks->lost = cpprof__malloc((shared->n_lost + 1) * sizeof *leaks->lost);
    if (!leaks->lost)
        return cpprof__fail_nomem(s->error);
    for (i = 1; i < CPPROF__HEAP_LIVE && leaks->n_lost < shared->n_lost; i++)
        if (shared->lost[i / 64] >> (i % 64) & 1)
            leaks->lost[leaks->n_lost++] =
                (struct cpprof__lost){i, shared->uses[i], false};
    return CPPROF_OK;
}

/* What the second has not, was not lost; and what is not there any more was
 * freed, so something led to it. */
static void
hold_against(struct search *s)
{
    const struct cpprof__leak_shared *shared = s->shared;
    struct cpprof__leaks *leaks = s->leaks;
    size_t i, n = 0;

    for (i = 0; i < leaks->n_lost; i++) {
        struct cpprof__lost lost = leaks->lost[i];
        const struct cpprof__heap_block *block =
            &cpprof__heap.blocks[lost.number];

        if (!(shared->lost[lost.number / 64] >> (lost.number % 64) & 1) ||
            shared->uses[lost.number] != lost.use)
            continue;
        if (!load_acquire(&block->address) ||
            load_acquire(&block->use) != lost.use) {
            leaks->n_freed++;
            continue;
        }
        lost.is_direct =
            shared->direct[lost.number / 64] >> (lost.number % 64) & 1;
        leaks->lost[n++] = lost;
    }
    leaks->n_lost = n;
    leaks->n_threads = shared->n_threads - 1;
    leaks->pause_ns = shared->went_on_ns - shared->stopped_ns;
}

static void
take_sums(struct search *s)
{
    s->leaks->n_unwalked = s->shared->n_unwalked;
    s->leaks->n_blocks = s->shared->n_blocks;
    s->leaks->root_bytes = s->shared->root_bytes;
    s->leaks->block_bytes = s->shared->block_bytes;
}

static bool
wait_apart(uint64_t begun_ns)
{
    while (!is_at_end &&
           cpprof__now_ns(CLOCK_MONOTONIC) - begun_ns < APART_NS) {
        if (cpprof__own_thread_must_leave())
            return false;
        cpprof__sleep_ns(LOOK_NS / 4);
    }
    return true;
}

static enum cpprof_status
search(struct search *s)
{
    uint64_t begun_ns;
    enum cpprof_status status = cpprof__leak_permit(s->error);

    if (status != CPPROF_OK || (status = take(s, false)) != CPPROF_OK)
        return status;
    begun_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    take_sums(s);
    if (!s->shared->n_lost)
        return CPPROF_OK;
    status = keep_lost(s);
    drop(s);
    if (status == CPPROF_OK && !wait_apart(begun_ns))
        return cpprof__fail(s->error, CPPROF_BUSY, 0,
                            "heapleak: the search was given up");
    /* What a second may have changed: filters, credentials, memory. */
    if (status == CPPROF_OK)
        status = cpprof__leak_permit(s->error);
    if (status == CPPROF_OK)
        status = take(s, true);
    if (status == CPPROF_OK) {
        take_sums(s);
        hold_against(s);
    }
    return status;
}

static bool
run(void *arg)
{
    struct search *s = arg;

    s->status = search(s);
    drop(s);
    return false;
}

static enum cpprof_status
check_heap(struct cpprof__leaks *leaks, struct cpprof_error *error)
{
    const struct cpprof__heap_head *head = cpprof__heap.head;
    const char *allocator;

    if (!head || (head->n_blocks <= 1 && head->rate != 1))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: no allocation was sampled%s",
                            head && head->rate ? " yet: all are with heap=1"
                                               : "; it needs the heap profile");
    if (!cpprof__leak_is_glibc(&allocator) && head->rate != 1)
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: of %s all blocks have to be followed "
                            "(heap=1)",
                            allocator);
    if (load_acquire(&cpprof__heap_misses_operators))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: the heap profile began when the program "
                            "ran already, so blocks that %s's operator delete "
                            "has freed may have been missed",
                            allocator);
    leaks->is_exact = head->rate == 1 && !head->n_rates && !head->n_lost &&
                      !head->n_unfollowed && !head->begun_ns;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__leaks_find(struct cpprof__leaks *leaks, struct cpprof_error *error)
{
    struct search s = {.leaks = leaks, .error = error};
    struct cpprof__own_thread thread = {
        .name = "cpprof", .run = run, .arg = &s, .flags = CPPROF__OWN_TABLE};
    enum cpprof_status status;
    int failed = 0;

    memset(leaks, 0, sizeof *leaks);
    status = check_heap(leaks, error);
    if (status != CPPROF_OK)
        return status;
    if (!cpprof__own_lock_take_until(&search_lock, 0))
        return cpprof__fail(error, CPPROF_BUSY, 0,
                            "heapleak: another search is under way");
    if (cpprof__own_thread_has_table())
        run(&s);
    else if (!(failed = cpprof__own_thread_start(&thread)))
        cpprof__own_thread_join(&thread, UINT64_MAX);
    cpprof__own_lock_give(&search_lock);
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed,
                            "heapleak: pthread_create: %s", strerror(failed));
    if (s.status != CPPROF_OK)
        cpprof__leaks_free(leaks);
    return s.status;
}

void
cpprof__leaks_free(struct cpprof__leaks *leaks)
{
    cpprof__free(leaks->lost);
    leaks->lost = NULL;
    leaks->n_lost = 0;
}

void
cpprof__leaks_at_end(void)
{
    is_at_end = true;
}

CPPROF__FIRST_STEP void
cpprof__leaks_in_child(void)
{
    cpprof__own_lock_in_child(&search_lock);
    is_at_end = false;
}
