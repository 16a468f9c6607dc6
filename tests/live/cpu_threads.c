/* SPDX-License-Identifier: MIT */
/*
 * All threads, however they came: before the start, by pthread_create,
 * thrd_create or a bare clone, with every signal blocked, in great number; and
 * the main thread may end first.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

/* --- each way to make a thread ---------------------------------------------
 */

static void *
posix_thread(void *seconds)
{
    hog_one((uint64_t)(*(double *)seconds * 1e9));
    load_sink++;
    return NULL;
}

static int
c11_thread(void *seconds)
{
    hog_two((uint64_t)(*(double *)seconds * 1e9));
    load_sink++;
    return 7;
}

static void
work_posix(double seconds)
{
    pthread_t thread;

    pthread_create(&thread, NULL, posix_thread, &seconds);
    pthread_join(thread, NULL);
}

static int c11_result;

static void
work_c11(double seconds)
{
    thrd_t thread;

    if (thrd_create(&thread, c11_thread, &seconds) != thrd_success)
        bail("thrd_create failed");
    thrd_join(thread, &c11_result);
}

/* A bare thread shares the thread pointer of its maker, so it may use nothing
 * of libc that needs its own: it counts, and nothing else. */
static __attribute__((noinline)) void
bare_hog(uint64_t n)
{
    uint64_t x = n | 1;

    for (; n; n--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    load_sink = x;
}

static uint64_t bare_steps;

static int
bare_thread(void *unused)
{
    bare_hog(bare_steps);
    load_sink++;
    return 0;
}

/* Steps of bare_hog that take so many seconds here. */
static uint64_t
steps_for(double seconds)
{
    uint64_t before = thread_cpu_ns();
    uint64_t n = 5000000;

    bare_hog(n);
    return (uint64_t)(seconds * 1e9 * (double)n /
                      (double)(thread_cpu_ns() - before));
}

static void
wait_until_zero(int *tid)
{
    int seen;

    while ((seen = __atomic_load_n(tid, __ATOMIC_ACQUIRE)) != 0)
        syscall(SYS_futex, tid, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void
work_bare(double seconds)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    static int tid;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
                CLONE_CHILD_CLEARTID;

    /* The scan that finds it comes about once a second: give it time. */
    bare_steps = steps_for(seconds + 1);
    if (clone(bare_thread, stack + sizeof stack, flags, NULL, &tid, NULL,
              &tid) < 0)
        bail("clone failed");
    wait_until_zero(&tid);
}

/* --- before the start, and without signals ---------------------------------
 */

static double early_seconds;
static pthread_barrier_t early_gate;
static bool block_more;

static void *
early_thread(void *block)
{
    const uint64_t everything = UINT64_MAX;
    sigset_t all;

    if (block) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
    }
    if (block_more)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &everything, NULL, 8);
    pthread_barrier_wait(&early_gate);
    hog_three((uint64_t)(early_seconds * 1e9));
    load_sink++;
    return NULL;
}

static struct profile *
profile_early(bool block, double seconds)
{
    pthread_t thread;

    early_seconds = seconds;
    pthread_barrier_init(&early_gate, NULL, 2);
    pthread_create(&thread, NULL, early_thread, block ? &early_gate : NULL);
    session_start(0);
    pthread_barrier_wait(&early_gate);
    pthread_join(thread, NULL);
    return session_stop();
}

static void
test_early(void)
{
    struct profile *p = profile_early(false, 0.5);

    check_near((double)profile_cpu_stack(p, "hog_three;early_thread"), 0.5e9,
               0.05e9, "a thread that was there before the start is sampled");
    profile_free(p);
}

/* As workers of servers do; and by a bare system call, which blocks libc's own,
 * too: then its time must show all the same. */
static void
test_blocked(void)
{
    struct profile *p = profile_early(true, 0.5);
    double seconds, seen = 0;

    check_near((double)profile_cpu_stack(p, "hog_three;early_thread"), 0.5e9,
               0.05e9, "a thread that blocks all signals is sampled");
    block_more = true;
    for (seconds = 0.5; seconds <= 2; seconds *= 2) {
        profile_free(p);
        p = profile_early(true, seconds);
        seen = (double)profile_cpu_in(p, "[signal blocked]") / 1e9;
        if (fabs(seen - seconds) <= seconds / 10)
            break;
    }
    block_more = false;
    if (!check_near(seen, early_seconds, early_seconds / 10,
                    "one that blocks libc's own has its time"))
        profile_note(p, 8);
    profile_free(p);
}

static bool
all_of_one(const struct profile *p)
{
    return profile_cpu_in(p, "hog_one") >= 10 * p->period;
}

static bool
all_of_two(const struct profile *p)
{
    return profile_cpu_in(p, "hog_two") >= 10 * p->period;
}

static bool
all_of_bare(const struct profile *p)
{
    return profile_cpu_in(p, "bare_hog") >= 10 * p->period;
}

static void
test_ways(void)
{
    struct profile *p = session_until(0, 0.15, 3, work_posix, all_of_one);

    check(profile_cpu_stack(p, "hog_one;posix_thread") >= 10 * p->period,
          "a thread of pthread_create is sampled");
    profile_free(p);
    p = session_until(0, 0.15, 3, work_c11, all_of_two);
    check(profile_cpu_stack(p, "hog_two;c11_thread") >= 10 * p->period,
          "a thread of thrd_create is sampled");
    check_equal(c11_result, 7, "and its result is passed on");
    profile_free(p);
    p = session_until(0, 0.5, 4, work_bare, all_of_bare);
    if (!check(profile_cpu_stack(p, "bare_hog;bare_thread") >= 10 * p->period,
               "a thread of a bare clone is found and sampled"))
        profile_note(p, 8);
    profile_free(p);
}

/* --- pthread semantics are kept --------------------------------------------
 */

static void *
cancelled_thread(void *arg)
{
    for (;;)
        usleep(1000);
    return NULL;
}

static void *
exiting_thread(void *arg)
{
    pthread_exit(arg);
}

static void
test_semantics(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    void *result = NULL;
    int value;

    session_start(0);
    pthread_create(&thread, NULL, exiting_thread, &value);
    pthread_join(thread, &result);
    check(result == &value, "pthread_exit's value arrives");
    pthread_create(&thread, NULL, cancelled_thread, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    check(result == PTHREAD_CANCELED, "a thread can be cancelled");
    pthread_attr_init(&attr);
    check_equal(pthread_attr_setstacksize(&attr, 1), EINVAL,
                "a stack size that is too small is still refused");
    pthread_attr_destroy(&attr);
    profile_free(session_stop());
}

/* --- many ------------------------------------------------------------------
 */

#define N_MANY 200

static pthread_barrier_t many_gate;
static uint64_t many_ns; /* that each of them burns */
static double many_used; /* what the last of work_many() used */

static void *
one_of_many(void *arg)
{
    pthread_barrier_wait(&many_gate);
    hog_four(many_ns);
    return NULL;
}

static void
work_many(double seconds)
{
    pthread_t threads[N_MANY];
    pthread_attr_t attr;
    uint64_t before = process_cpu_ns();
    int i;

    many_ns = (uint64_t)(seconds * 1e9 / N_MANY);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 17);
    pthread_barrier_init(&many_gate, NULL, N_MANY + 1);
    for (i = 0; i < N_MANY; i++)
        if (pthread_create(&threads[i], &attr, one_of_many, NULL))
            bail("thread %d of %d cannot be made", i, N_MANY);
    pthread_barrier_wait(&many_gate);
    for (i = 0; i < N_MANY; i++)
        pthread_join(threads[i], NULL);
    many_used = (double)(process_cpu_ns() - before);
}

static bool
sum_is_right(const struct profile *p)
{
    return fabs((double)profile_cpu_ns(p) - many_used) <= many_used / 20;
}

static void
test_many(void)
{
    struct profile *p = session_until(0, 2, 4, work_many, sum_is_right);

    if (!check_near((double)profile_cpu_ns(p), many_used, many_used / 20,
                    "with 200 threads the sum is right within 5 %"))
        profile_note(p, 6);
    check_equal(profile_cpu_in(p, "[lost samples]"), 0, "and nothing is lost");
    profile_free(p);
}

/* --- the main thread ends first --------------------------------------------
 */

/* Writes by itself, since main() is gone: what is tested in a child. */
static void *
survivor(void *ms)
{
    struct cpprof_error error = {0};

    usleep(50000);
    hog_two(*(uint64_t *)ms * MS);
    if (cpprof_cpu_stop(&error)) {
        note("stop: %s", error.text);
        _exit(1);
    }
    _exit(0);
}

static void
child_without_main(const char *path, uint64_t ms)
{
    static uint64_t survives_ms;
    struct cpprof_cpu_options options = session_options(0);
    struct cpprof_writer writer;
    pthread_t thread;

    survives_ms = ms;
    if (cpprof_writer_to_path(path, &writer, NULL) ||
        cpprof_cpu_start(&writer, &options, NULL))
        _exit(2);
    pthread_create(&thread, NULL, survivor, &survives_ms);
    hog_one(100 * MS);
    pthread_exit(NULL);
}

/* NULL: it did not end well. */
static struct profile *
profile_without_main(uint64_t ms)
{
    const char *path = scratch_path("without_main.pb.gz");
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        child_without_main(path, ms);
    waitpid(child, &status, 0);
    return status ? NULL : profile_load(path);
}

/* Which of two threads at work ITIMER_PROF charges is chance: a longer run has
 * more of the one alone. */
static void
test_without_main(void)
{
    struct profile *p = NULL;
    double seen = 0, ran = 0;
    uint64_t ms;

    for (ms = 400; ms <= 3200; ms *= 2) {
        profile_free(p);
        p = profile_without_main(ms);
        if (!p)
            break;
        ran = (double)(ms * MS);
        seen = (double)profile_cpu_stack(p, "hog_two;survivor");
        if (fabs(seen - ran) <= 0.15 * ran)
            break;
    }
    if (!check(p, "stop works when the main thread has ended"))
        return;
    check_near(seen, ran, 0.15 * ran,
               "threads are sampled after the main thread ended");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_ways();
    test_early();
    test_blocked();
    test_semantics();
    test_many();
    test_without_main();
    return check_done();
}
