/* SPDX-License-Identifier: MIT */
/*
 * Jumps out of every call that waits, after which the thread goes on, and ends
 * in each way there is: nothing of the call is left for that to trip over. What
 * was waited is in the block profile if the C library tells that somebody
 * jumped, which it does of its points of cancellation.
 */
#include "lock_calls.h"
#include "others.h"
#include "tap.h"

#include <cpprof/profiles.h>
#include <cpprof/records.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS 1000 /* of usleep() */

enum how { RETURNS, EXITS, IS_CANCELLED };
static const char *const hows[] = {"returns", "exits", "is cancelled"};

struct job {
    int call;
    enum how how;
};

static sigjmp_buf out;
static _Atomic int n_cleaned, n_waiting;

static void
jump(int signal)
{
    (void)signal;
    siglongjmp(out, 1);
}

static void
clean(void *arg)
{
    (void)arg;
    n_cleaned++;
}

/* What was left below is used for something else. */
__attribute__((noipa)) static void
use_stack(int depth)
{
    volatile char room[4096];

    memset((char *)room, depth, sizeof room);
    if (depth)
        use_stack(depth - 1);
    room[0]++;
}

static void
end(enum how how)
{
    if (how == EXITS)
        pthread_exit((void *)7);
    if (how == IS_CANCELLED) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
}

static void *
jumps_out(void *arg)
{
    const struct job *job = arg;
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

    pthread_cleanup_push(clean, NULL);
    if (!sigsetjmp(out, 1)) {
        n_waiting++;
        lock_call_wait(job->call);
    }
    use_stack(10);
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    end(job->how);
    pthread_cleanup_pop(1);
    return (void *)7;
}

static int64_t
waited_ms(bool mutex)
{
    static struct cpprof_wait_record records[1000];
    size_t i, n = 0;
    int64_t ns = 0;

    if ((mutex ? cpprof_mutex_records : cpprof_block_records)(records, 1000, &n,
                                                              NULL) ||
        n > 1000)
        bail("no records");
    for (i = 0; i < n; i++)
        ns += records[i].delay_ns;
    return ns / 1000000;
}

/* Returns for how long it waited, as the block profile has it. */
static double
jump_and_end(int call, enum how how, const char *name)
{
    struct job job = {call, how};
    int cleaned = n_cleaned;
    int64_t before = waited_ms(false);
    void *result = NULL;
    pthread_t thread;

    lock_call_prepare(call);
    n_waiting = 0;
    if (pthread_create(&thread, NULL, jumps_out, &job))
        bail("no thread");
    while (!n_waiting)
        usleep(MS);
    usleep(30 * MS);
    pthread_kill(thread, SIGUSR1);
    while (pthread_tryjoin_np(thread, &result))
        usleep(MS);
    check(n_cleaned == cleaned + 1 &&
              result == (how == IS_CANCELLED ? PTHREAD_CANCELED : (void *)7),
          name);
    return (double)(waited_ms(false) - before);
}

/* On a busy machine one may jump before it waits: the longest of some. */
static void
one_jumps_and_ends(int call, enum how how)
{
    bool counts = lock_call_is_cancellable(call);
    double ms = 0;
    char name[100];
    int i;

    snprintf(name, sizeof name, "out of %s, and the thread %s",
             lock_call_names[call], hows[how]);
    for (i = 0; i < (counts ? 5 : 1) && ms < 10; i++) {
        double waited = jump_and_end(call, how, name);

        ms = waited > ms ? waited : ms;
    }
    if (!counts)
        return;
    snprintf(name, sizeof name, "%s: what was waited until then counts",
             lock_call_names[call]);
    check_at_least(ms, 10, name);
}

/* ---- alternate stacks ------------------------------------------------- */

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int n_held;

static void
wait_inside(int signal)
{
    (void)signal;
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
}

/* The other waits for both at the end, one in a handler; 100 ms long. */
static void *
holds_both(void *other)
{
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    n_held++;
    let_others_sleep();
    pthread_kill(*(pthread_t *)other, SIGUSR2);
    usleep(20 * MS);
    pthread_mutex_unlock(&inner);
    usleep(100 * MS);
    pthread_mutex_unlock(&outer);
    return NULL;
}

__attribute__((noipa)) static void
wait_below(int depth)
{
    volatile char room[4096];

    room[0] = 1;
    if (depth) {
        wait_below(depth - 1);
    } else {
        pthread_mutex_lock(&outer);
        pthread_mutex_unlock(&outer);
    }
    room[0]++;
}

/* The wait that it interrupts is lower, and goes on. */
static void
handler_on_a_stack_further_up_leaves_the_wait_alone(void)
{
    char room[65536];
    stack_t here = {.ss_sp = room, .ss_size = sizeof room};
    stack_t off = {.ss_flags = SS_DISABLE};
    pthread_t self = pthread_self(), thread;
    int64_t before = waited_ms(true);

    sigaltstack(&here, NULL);
    if (pthread_create(&thread, NULL, holds_both, &self))
        bail("no thread");
    while (!n_held)
        usleep(MS);
    wait_below(3);
    pthread_join(thread, NULL);
    sigaltstack(&off, NULL);
    check_at_least((double)(waited_ms(true) - before), 100,
                   "a handler that waits on a stack in a variable further up: "
                   "the wait that it interrupted is charged whole");
}

int
main(void)
{
    struct sigaction action = {.sa_handler = jump};
    int call, how;

    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = wait_inside;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    for (call = 0; call < LOCK_CALLS; call++)
        for (how = RETURNS; how <= IS_CANCELLED; how++)
            one_jumps_and_ends(call, (enum how)how);
    handler_on_a_stack_further_up_leaves_the_wait_alone();
    return check_done();
}
