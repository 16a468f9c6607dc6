/* SPDX-License-Identifier: MIT */
/*
 * Good manners in a program that is profiled by CPPROF= from its first
 * instruction: what it says about signals is what it gets, and its children
 * live. Each case was wrong once.
 */
#include "tap.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Old names are what is tested here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define FORKS 40

static void
nothing(int signo)
{
    (void)signo;
}

/* signal() was answered by ourselves for every signal, with SA_RESTART. */
static void
test_siginterrupt(void)
{
    struct sigaction action;

    siginterrupt(SIGALRM, 1);
    signal(SIGALRM, nothing);
    sigaction(SIGALRM, NULL, &action);
    check((action.sa_flags & SA_RESTART) == 0,
          "signal() keeps to what siginterrupt() said");
    errno = 0;
    check(signal(SIGTERM, SIG_ERR) == SIG_ERR && errno == EINVAL,
          "and refuses what is no handler");
}

/* sigset() reached the kernel, and the next tick ended the program. */
static void
test_sigset(void)
{
    volatile double sink = 0;
    int i;

    check(sigset(SIGPROF, SIG_DFL) == SIG_DFL, "sigset() knows the default");
    for (i = 0; i < 100000000; i++)
        sink = sink * 1.0001 + i;
    check(1, "and ticks after it do no harm");
    check(sigignore(SIGPROF) == 0 && signal(SIGPROF, SIG_DFL) == SIG_IGN,
          "sigignore() is reported back");
}

static int
look(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    (void)arg;
    return 0;
}

static int stop_looking;

static void *
look_all_the_time(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&stop_looking, __ATOMIC_RELAXED))
        dl_iterate_phdr(look, NULL);
    return NULL;
}

/* The loader's lock, held by another thread at the fork, is never given back
 * in the child: a child that asks for it hangs. */
static void
test_fork_beside_the_loader(void)
{
    pthread_t thread;
    int i, status, n_well = 0;

    pthread_create(&thread, NULL, look_all_the_time, NULL);
    for (i = 0; i < FORKS; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(7);
        if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
            WEXITSTATUS(status) == 7)
            n_well++;
    }
    __atomic_store_n(&stop_looking, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    check_equal(n_well, FORKS,
                "children live that are forked while the loader is busy");
}

int
main(int argc, char **argv)
{
    char variable[64];

    if (argc < 2)
        return 2;
    if (!getenv("CPPROF")) {
        snprintf(variable, sizeof variable, "cpu=100,engine=%s,out=/dev/null",
                 argv[1]);
        setenv("CPPROF", variable, 1);
        execv("/proc/self/exe", argv);
        bail("exec: %s", strerror(errno));
    }
    alarm(100); /* instead of a hang */
    test_siginterrupt();
    signal(SIGALRM, SIG_DFL);
    test_sigset();
    test_fork_beside_the_loader();
    return check_done();
}
