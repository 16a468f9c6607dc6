/* SPDX-License-Identifier: MIT */
/*
 * Do the block and the mutex profile say what happened? Threads measure their
 * own waits; the profiles are read in their text form, by function.
 */
#include "tap.h"

#include <cpprof/profiles.h>

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noipa)) /* nor made one with its like */
#define AS_FRAME __asm__ volatile("")   /* the call before is no tail call */

/* ---- reading ---------------------------------------------------------- */

static int
memory_write(void *file, const void *data, size_t n)
{
    return fwrite(data, 1, n, file) == n ? 0 : -1;
}

static int
memory_close(void *file, int failed)
{
    return fclose(file);
}

static char *
text_of(const char *name, uint32_t flags)
{
    struct cpprof_profile_options options = {
        .size = sizeof options, .debug = 1, .flags = flags};
    struct cpprof_error error = {0};
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);

    if (!file || cpprof_profile_write(
                     cpprof_profile_lookup(name),
                     &(struct cpprof_writer){sizeof(struct cpprof_writer),
                                             memory_write, memory_close, file},
                     &options, &error))
        bail("write: %s", error.text);
    return text;
}

struct sum {
    int64_t count, delay_ns;
    int records;
};

/* What a profile says of stacks that have all of these functions (two may be
 * NULL). */
static struct sum
sum_in(const char *profile, uint32_t flags, const char *one, const char *two)
{
    char *text = text_of(profile, flags), *at, *next;
    char names[2][100];
    struct sum sum = {0, 0, 0};

    snprintf(names[0], sizeof names[0], "\t%s+0x", one);
    snprintf(names[1], sizeof names[1], "\t%s+0x", two ? two : one);
    for (at = strstr(text, "\n"); at; at = next) {
        int64_t delay, count;

        next = strstr(at + 1, "\n\n");
        if (next)
            *next++ = 0;
        while (*at &&
               (*at < '0' || *at > '9' || !strstr(at, " @") ||
                sscanf(at, "%" SCNd64 " %" SCNd64 " @", &delay, &count) != 2))
            at = strchr(at, '\n') ? strchr(at, '\n') + 1 : at + strlen(at);
        if (*at && strstr(at, names[0]) && strstr(at, names[1])) {
            sum.delay_ns += delay;
            sum.count += count;
            sum.records++;
        }
    }
    free(text);
    return sum;
}

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- truth ------------------------------------------------------------ */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t held_rw = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic int64_t waited_ns;
static _Atomic int n_waiting;

NOINLINE static void *
truth_waiter(void *arg)
{
    int64_t before;

    n_waiting++;
    before = now_ns();
    pthread_mutex_lock(&held);
    waited_ns += now_ns() - before;
    pthread_mutex_unlock(&held);
    return NULL;
}

NOINLINE static void *
truth_writer(void *arg)
{
    int64_t before;

    n_waiting++;
    before = now_ns();
    pthread_rwlock_wrlock(&held_rw);
    waited_ns += now_ns() - before;
    pthread_rwlock_unlock(&held_rw);
    return NULL;
}

NOINLINE static void
truth_holder(int n, bool rw)
{
    pthread_t threads[32];
    int i;

    n_waiting = 0;
    if (rw)
        pthread_rwlock_rdlock(&held_rw);
    else
        pthread_mutex_lock(&held);
    for (i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, rw ? truth_writer : truth_waiter,
                           NULL))
            bail("no thread");
    while (n_waiting < n)
        usleep(1000);
    usleep(300000);
    if (rw)
        pthread_rwlock_unlock(&held_rw);
    else
        pthread_mutex_unlock(&held);
    for (i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static double
off_by(int64_t got, int64_t want)
{
    double d = (double)(got - want) / (double)want;

    return d < 0 ? -d : d;
}

/* On a machine that does other things, waiters wake up late, which is not the
 * holder's: the best of some. */
static void
delays_are_true(int n, bool rw)
{
    const char *waiter = rw ? "truth_writer" : "truth_waiter";
    double block = 1, mutex = 1;
    char name[100];
    int i;

    for (i = 0; i < 5 && (block > 0.05 || mutex > 0.05); i++) {
        struct sum b = sum_in("block", 0, waiter, NULL);
        struct sum m = sum_in("mutex", 0, "truth_holder", NULL);
        double off;

        waited_ns = 0;
        truth_holder(n, rw);
        off = off_by(sum_in("block", 0, waiter, NULL).delay_ns - b.delay_ns,
                     waited_ns);
        block = off < block ? off : block;
        off = off_by(sum_in("mutex", 0, "truth_holder", NULL).delay_ns -
                         m.delay_ns,
                     waited_ns);
        mutex = off < mutex ? off : mutex;
    }
    snprintf(name, sizeof name, "%d waiters%s: block is within 5 %%", n,
             rw ? " of a read-write lock" : "");
    check_at_most(block, 0.05, name);
    snprintf(name, sizeof name,
             "%d waiters%s: the holder is charged within 5 %%", n,
             rw ? " of a read-write lock" : "");
    check_at_most(mutex, 0.05, name);
}

/* ---- Go's tests ------------------------------------------------------- */

static pthread_mutex_t go_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t go_mutex_ns; /* nobody waited for longer */

/* It says so, as soon as a thread sleeps in front of it. */
static bool
is_waited_for(const pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE) == 2;
}

static void *
locks_later(void *arg)
{
    pthread_mutex_lock(&go_mutex);
    pthread_mutex_unlock(&go_mutex);
    return NULL;
}

NOINLINE static void
block_mutex(void)
{
    pthread_t thread;
    int64_t before = now_ns();

    pthread_mutex_lock(&go_mutex);
    pthread_create(&thread, NULL, locks_later, NULL);
    while (!is_waited_for(&go_mutex))
        usleep(100);
    usleep(50000);
    pthread_mutex_unlock(&go_mutex);
    pthread_join(thread, NULL); /* it waited until it had the lock */
    go_mutex_ns = now_ns() - before;
}

/* Go's TestMutexProfile: the first six lines. */
static void
six_lines_of_the_mutex_profile(void)
{
    char *text, *line, *lines[6];
    int64_t count, delay;
    int i;

    block_mutex();
    text = text_of("mutex", 0);
    line = text;
    for (i = 0; i < 6; i++)
        lines[i] = strsep(&line, "\n");
    check_text(lines[0], "--- mutex:", "line 1 names the profile");
    check_text(lines[1], "cycles/second=1000000000", "line 2 is the clock");
    check_text(lines[2], "sampling period=1", "line 3 is the fraction");
    check(sscanf(lines[3], "%" SCNd64 " %" SCNd64 " @ 0x", &delay, &count) ==
                  2 &&
              count == 1,
          "line 4 is one contention");
    check_at_least((double)delay / 1e6, 50, "it is as long as the wait");
    check_at_most((double)delay, (double)go_mutex_ns, "and no longer");
    check_has(lines[4], "\tpthread_mutex_unlock+0x", "line 5 is the unlock");
    check_has(lines[5], "\tblock_mutex+0x", "line 6 is who held it");
    free(text);
}

/* Go's TestMutexProfileRateAdjust. */
static void
turning_off_keeps_what_was_counted(void)
{
    struct sum before = sum_in("mutex", 0, "block_mutex", NULL), after;

    check_equal(cpprof_mutex_set_fraction(0), 1, "the fraction was 1");
    after = sum_in("mutex", 0, "block_mutex", NULL);
    check_equal(after.count, before.count, "turned off, counts stay");
    check_equal(after.delay_ns, before.delay_ns, "turned off, delays stay");
    cpprof_mutex_set_fraction(1);
}

NOINLINE static void
again_and_again(void)
{
    volatile int n = 3;

    while (n-- > 0)
        block_mutex();
}

static void
one_stack_is_one_record(void)
{
    struct sum sum;

    again_and_again();
    sum = sum_in("mutex", 0, "block_mutex", "again_and_again");
    check_equal(sum.records, 1, "a stack that unlocks often is one row");
    check_equal(sum.count, 3, "of all that it did");
}

static pthread_mutex_t nested;

static void *
locks_nested(void *arg)
{
    pthread_mutex_lock(&nested);
    pthread_mutex_unlock(&nested);
    return NULL;
}

NOINLINE static void
inner_unlock(void)
{
    pthread_mutex_unlock(&nested);
    AS_FRAME;
}

NOINLINE static void
outer_unlock(void)
{
    pthread_mutex_unlock(&nested);
    AS_FRAME;
}

static void
recursive_mutex_is_charged_to_the_last_unlock(void)
{
    pthread_mutexattr_t attr;
    pthread_t thread;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&nested, &attr);
    pthread_mutex_lock(&nested);
    pthread_mutex_lock(&nested);
    pthread_create(&thread, NULL, locks_nested, NULL);
    while (!is_waited_for(&nested))
        usleep(100);
    inner_unlock();
    usleep(20000);
    outer_unlock();
    pthread_join(thread, NULL);
    check_equal(sum_in("mutex", 0, "inner_unlock", NULL).count, 0,
                "the inner unlock of a recursive mutex is not charged");
    check_equal(sum_in("mutex", 0, "outer_unlock", NULL).count, 1,
                "the outer one is");
}

/* ---- every kind of wait ----------------------------------------------- */

static pthread_mutex_t kind_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t kind_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t kind_condition = PTHREAD_COND_INITIALIZER;
static mtx_t kind_c11;
static pthread_barrier_t kind_barrier;
static sem_t kind_semaphore;

static void *
makes_wait(void *arg)
{
    pthread_mutex_lock(&kind_mutex);
    pthread_rwlock_wrlock(&kind_rwlock);
    mtx_lock(&kind_c11);
    pthread_barrier_wait(&kind_barrier);
    usleep(15000);
    pthread_mutex_unlock(&kind_mutex);
    usleep(15000);
    pthread_rwlock_unlock(&kind_rwlock);
    usleep(15000);
    mtx_unlock(&kind_c11);
    usleep(15000);
    sem_post(&kind_semaphore);
    usleep(15000);
    pthread_mutex_lock(&kind_mutex);
    pthread_cond_signal(&kind_condition);
    pthread_mutex_unlock(&kind_mutex);
    usleep(15000);
    pthread_barrier_wait(&kind_barrier);
    usleep(15000);
    return NULL;
}

NOINLINE static void
waits_in_every_way(void)
{
    pthread_t thread;

    mtx_init(&kind_c11, mtx_plain);
    pthread_barrier_init(&kind_barrier, NULL, 2);
    sem_init(&kind_semaphore, 0, 0);
    pthread_create(&thread, NULL, makes_wait, NULL);
    pthread_barrier_wait(&kind_barrier);
    pthread_mutex_lock(&kind_mutex);
    pthread_rwlock_rdlock(&kind_rwlock);
    mtx_lock(&kind_c11);
    sem_wait(&kind_semaphore);
    pthread_cond_wait(&kind_condition, &kind_mutex);
    pthread_barrier_wait(&kind_barrier);
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&kind_mutex);
    pthread_rwlock_unlock(&kind_rwlock);
    mtx_unlock(&kind_c11);
}

static void
every_kind_of_wait_has_its_name(void)
{
    static const char *const names[] = {
        "pthread_mutex_lock", "pthread_rwlock_rdlock", "mtx_lock",
        "sem_wait",           "pthread_cond_wait",     "pthread_barrier_wait",
        "pthread_join"};
    bool is_true[sizeof names / sizeof *names] = {false};
    int64_t before[sizeof names / sizeof *names] = {0};
    char name[100];
    size_t i, n_true = 0;
    int round;

    /* Who begins to wait late, waits less. */
    for (round = 0; round < 10 && n_true < sizeof names / sizeof *names;
         round++) {
        waits_in_every_way();
        for (i = n_true = 0; i < sizeof names / sizeof *names; i++) {
            struct sum sum = sum_in("block", 0, names[i], "waits_in_every_way");
            int64_t delay = sum.delay_ns - before[i];

            before[i] = sum.delay_ns;
            is_true[i] |= delay > 8000000 && delay < 60000000;
            n_true += is_true[i];
        }
    }
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s is a wait of 15 ms", names[i]);
        check(is_true[i], name);
    }
}

static sem_t for_long;

/* glibc counts them above the value. */
static bool
has_waiter(const sem_t *semaphore)
{
    uint64_t word;

    memcpy(&word, semaphore, sizeof word);
    return word >> 32 != 0;
}

NOINLINE static void *
waits_for_long(void *arg)
{
    sem_wait(&for_long);
    AS_FRAME;
    return NULL;
}

static void
wait_in_progress_is_seen_when_asked_for(void)
{
    int64_t begin = now_ns();
    struct sum sum;
    pthread_t thread;

    pthread_create(&thread, NULL, waits_for_long, NULL);
    while (!has_waiter(&for_long))
        usleep(100);
    usleep(50000);
    sum = sum_in("block", 0, "waits_for_long", NULL);
    check_equal(sum.count, 0, "a wait in progress is not in the profile");
    sum = sum_in("block", CPPROF_FLAG_IN_PROGRESS, "waits_for_long", NULL);
    check_equal(sum.count, 1, "it is when it is asked for");
    check_at_least((double)sum.delay_ns / 1e6, 50, "for as long as it lasts");
    check_at_most((double)sum.delay_ns, (double)(now_ns() - begin),
                  "and no longer");
    check_equal(
        sum_in("block", CPPROF_FLAG_IN_PROGRESS, "waits_for_long", "wait_for")
            .records,
        0, "no frame of ours is in its stack");
    check_equal(
        sum_in("block", CPPROF_FLAG_IN_PROGRESS, "waits_for_long", "sem_wait")
            .records,
        1, "what it waits in is, as when it is over");
    sem_post(&for_long);
    pthread_join(thread, NULL);
}

/* ---- all at once ------------------------------------------------------ */

static pthread_mutex_t many[64];
static _Atomic int stop;
static int64_t counters[64];

static void *
locks_at_random(void *arg)
{
    unsigned x = (unsigned)(uintptr_t)arg * 2654435761u + 1;

    while (!stop) {
        unsigned i = (x = x * 1103515245 + 12345) >> 16 & 63;

        pthread_mutex_lock(&many[i]);
        counters[i]++;
        if (x & 0x800)
            sched_yield();
        counters[i]++;
        pthread_mutex_unlock(&many[i]);
    }
    return NULL;
}

/* A child has waited for nothing, and its own locks work. */
static int
child_works(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (sum_in("block", 0, "truth_waiter", NULL).count)
            _exit(1);
        block_mutex();
        _exit(sum_in("mutex", 0, "block_mutex", NULL).count == 1 ? 0 : 2);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void
nothing_breaks_under_churn(void)
{
    pthread_t threads[8];
    int64_t odd = 0;
    int i, n = 0, children = 0;

    for (i = 0; i < 64; i++)
        pthread_mutex_init(&many[i], NULL);
    for (i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, locks_at_random,
                       (void *)(uintptr_t)i);
    for (i = 0; i < 20; i++) {
        cpprof_block_set_rate(i % 4 * 500);
        cpprof_mutex_set_fraction(i % 3);
        usleep(30000);
        if (i % 5 == 4) {
            cpprof_block_set_rate(1);
            cpprof_mutex_set_fraction(1);
            children += child_works();
            n++;
        }
        stop = 1;
        pthread_join(threads[i % 8], NULL);
        stop = 0;
        pthread_create(&threads[i % 8], NULL, locks_at_random, NULL);
    }
    stop = 1;
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < 64; i++)
        odd += counters[i] & 1;
    check_equal(odd, 0, "what the locks guard is whole");
    check_equal(children, n, "children begin anew and have locks that work");
}

int
main(void)
{
    static const int n_waiters[] = {2, 8, 32};
    size_t i;

    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    six_lines_of_the_mutex_profile();
    turning_off_keeps_what_was_counted();
    one_stack_is_one_record();
    recursive_mutex_is_charged_to_the_last_unlock();
    every_kind_of_wait_has_its_name();
    wait_in_progress_is_seen_when_asked_for();
    for (i = 0; i < 3; i++)
        delays_are_true(n_waiters[i], false);
    delays_are_true(8, true);
    nothing_breaks_under_churn();
    return check_done();
}
