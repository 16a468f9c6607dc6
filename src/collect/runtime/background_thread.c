/* SPDX-License-Identifier: MIT */
#include "collect/runtime/background_thread.h"

#include "arch/atomic.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/own_threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Tunable. New stacks wait this long for their mappings, and a recorder for
 * the process to notice that it stopped. */
#define TICK_NS 200000000

/* For libdw, which recurses over DIEs; touched as far as it is used. */
#define STACK (1024 * 1024)

static struct cpprof__background_thread_plan plan;
static pthread_t thread;
static bool is_running;
static uint32_t finish; /* futex */

static void *
keep(void *arg)
{
    const struct timespec tick = {0, TICK_NS};

    (void)arg;
    cpprof__hook_self.exempt++;
    cpprof__own_thread_begin();
    prctl(PR_SET_NAME, "cpprof");
    while (!load_acquire(&finish)) {
        syscall(SYS_futex, &finish, FUTEX_WAIT_PRIVATE, 0,
                plan.tick ? &tick : NULL, NULL, 0);
        if (plan.tick && !plan.tick())
            break;
        if (plan.tick && cpprof__own_threads_are_alone())
            break;
    }
    if (load_acquire(&finish) && plan.last)
        plan.last();
    cpprof__own_thread_end();
    return NULL;
}

int
cpprof__background_thread_start(
    const struct cpprof__background_thread_plan *wanted)
{
    sigset_t all, saved;
    pthread_attr_t attr;
    int failed;
    CPPROF__EXEMPT;

    plan = *wanted;
    finish = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    cpprof__own_threads_mask(&saved);
    failed = cpprof__own_pthread_create(&thread, &attr, keep, NULL);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attr);
    is_running = !failed;
    return failed;
}

bool
cpprof__background_thread_stop(unsigned seconds)
{
    struct timespec until;

    if (!is_running)
        return false;
    is_running = false;
    store_release(&finish, 1u);
    syscall(SYS_futex, &finish, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    return !pthread_timedjoin_np(thread, NULL, &until);
}

void
cpprof__background_thread_forget(void)
{
    is_running = false;
}
