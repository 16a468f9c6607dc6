/* SPDX-License-Identifier: MIT */
/* guest: 3. A thread leaves unshare() from a handler by siglongjmp, and ends;
 * others call it afterwards. */
#include "host.h"
#include <sched.h>
#include <setjmp.h>
#include <sys/syscall.h>

enum { CALLS = 300, EVERY_NS = 700000 };

static sigjmp_buf before;
static volatile bool is_inside;

static void
leave(int signal)
{
    (void)signal;
    if (is_inside) {
        is_inside = false;
        siglongjmp(before, 1);
    }
}

static void *
call(void *unused)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = SIGUSR1};
    struct itimerspec when = {{0, EVERY_NS}, {0, EVERY_NS}};
    timer_t timer;
    volatile int i;

    event._sigev_un._tid = (int)syscall(SYS_gettid);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &when, NULL);
    for (i = 0; i < CALLS; i++)
        if (!sigsetjmp(before, 1)) {
            is_inside = true;
            unshare(CLONE_FILES);
            is_inside = false;
        }
    timer_delete(timer);
    return unused;
}

int
main(void)
{
    struct sigaction action = {.sa_handler = leave};
    pthread_t thread;
    int i;

    sigaction(SIGUSR1, &action, NULL);
    busy_ms(50);
    for (i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, call, NULL);
        pthread_join(thread, NULL);
    }
    alarm(20);
    EXPECT(unshare(CLONE_FILES) == 0, "unshare: %s", strerror(errno));
    return host_wrong;
}
