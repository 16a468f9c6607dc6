/* SPDX-License-Identifier: MIT */
/* guest: 3. A thread whose system calls go to the program's handler of SIGSYS
 * while a byte says so (syscall user dispatch, as Wine has it for the code of
 * Windows) is asked for its own calls alone, and can leave that state. A child
 * blocks the signals that its parent blocks. */
#include "filter.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

enum { CALLS = 20, GUEST_CALL = 4242, PASS = 0, DISPATCH = 1 };

static volatile char selector;
static int n_asked, n_strange;

static void
answer(int number, siginfo_t *info, void *context)
{
    selector = PASS;
    if (info->si_syscall == GUEST_CALL)
        n_asked++;
    else
        n_strange++;
    answer_call(context, 42);
}

static __attribute__((noinline)) void
compute(unsigned n)
{
    volatile unsigned sink = 0;

    for (unsigned i = 0; i < n * (host_busy + 9) / 100; i++)
        sink += i;
}

/* What runs while calls are led to the handler: it makes none but its own. */
static void
run_dispatched(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    selector = DISPATCH;
    compute(6000000);
    for (int i = 0; i < 100; i++) {
        free(malloc(5000));
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    EXPECT(syscall(GUEST_CALL) == 42 && selector == PASS, "not asked");
}

static uint64_t
blocked_signals(void)
{
    uint64_t mask = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    return mask;
}

static void
make_child(uint64_t blocked)
{
    pid_t pid = fork();

    if (pid == 0) {
        busy_ms(20);
        _exit(blocked_signals() == blocked ? 3 : 4);
    }
    EXPECT(status_of(pid) == 3, "the child blocks other signals");
}

static void *
be_dispatched(void *arg)
{
    uint64_t blocked = blocked_signals();

    free(malloc(5000));
    EXPECT(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector) == 0,
           "prctl: %s", strerror(errno));
    EXPECT(prctl(PR_SET_SYSCALL_USER_DISPATCH, 9, 0, 0, 0) == -1,
           "an unknown state was set");
    for (int i = 0; i < CALLS; i++)
        run_dispatched();
    make_child(blocked);
    EXPECT(prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) == 0, "off: %s",
           strerror(errno));
    EXPECT(n_asked == CALLS && n_strange == 0, "asked %d times, and %d",
           n_asked, n_strange);
    EXPECT(blocked_signals() == blocked, "signals stay blocked");
    n_asked = n_strange = 0;
    busy_ms(20);
    return arg;
}

int
main(void)
{
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    pthread_t thread;

    sigaction(SIGSYS, &action, NULL);
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0)) {
        printf("this kernel has no syscall user dispatch\n");
        return 0;
    }
    busy_ms(20);
    pthread_create(&thread, NULL, be_dispatched, NULL);
    pthread_join(thread, NULL);
    be_dispatched(NULL);
    return host_wrong;
}
