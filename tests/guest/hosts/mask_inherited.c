/* SPDX-License-Identifier: MIT */
/* guest: 4. A thread that was born with SIGPROF blocked sees it blocked, and
 * a SIGPROF of the program waits for who waits for it. */
#include "host.h"

static bool
is_blocked(void)
{
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGPROF) == 1;
}

static void *
worker(void *arg)
{
    sigset_t more, saved, pending;

    EXPECT(is_blocked(), "it is not blocked");
    busy_ms(60);
    sigemptyset(&more);
    sigaddset(&more, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &more, &saved);
    EXPECT(sigismember(&saved, SIGPROF) == 1, "it was not blocked");
    busy_ms(20);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    EXPECT(is_blocked(), "it is blocked no longer");
    kill(getpid(), SIGPROF);
    busy_ms(60);
    pthread_kill(pthread_self(), SIGPROF);
    sigpending(&pending);
    EXPECT(sigismember(&pending, SIGPROF) == 1, "its own is not pending");
    EXPECT(is_blocked(), "it is not blocked in the end");
    busy_ms(30);
    return arg;
}

static void *
runs_another(void *name)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl(name, name, "again", NULL);
        _exit(9);
    }
    EXPECT(status_of(pid) == 0, "the mask of the new image is another");
    return NULL;
}

int
main(int argc, char **argv)
{
    pthread_t thread, other;
    siginfo_t info;
    sigset_t all;

    if (argc > 1)
        return is_blocked() ? 0 : 1;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_create(&thread, NULL, worker, NULL);
    EXPECT(sigwaitinfo(&all, &info) == SIGPROF && info.si_pid == getpid(),
           "signal %d came", info.si_signo);
    pthread_join(thread, NULL);
    pthread_create(&other, NULL, runs_another, "/proc/self/exe");
    pthread_join(other, NULL);
    return host_wrong;
}
