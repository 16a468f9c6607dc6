/* SPDX-License-Identifier: MIT */
/*
 * fork, vfork, posix_spawn and exec in a profiled process: nothing hangs,
 * nothing kills the new image, and a child is not sampled by its parent's
 * timers (Go: TestCPUProfileWithFork).
 */
#include "load.h"
#include "session.h"
#include "tap.h"
#include "writers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *self_path = "/proc/self/exe";

static int
wait_for(pid_t child)
{
    int status = -1;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* --- a large process that forks --------------------------------------------
 */

static int stop_hogs;

static void *
background_hog(void *arg)
{
    while (!__atomic_load_n(&stop_hogs, __ATOMIC_RELAXED))
        hog_three(10 * MS);
    return NULL;
}

static int
spawn_true(void)
{
    char *argv[] = {"true", NULL};
    pid_t child;

    if (posix_spawnp(&child, "true", NULL, NULL, argv, environ))
        return -1;
    return wait_for(child);
}

static int
vfork_true(void)
{
    pid_t child = vfork();

    if (child == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    return wait_for(child);
}

static int
fork_true(void)
{
    pid_t child = fork();

    if (child == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    return wait_for(child);
}

static int
count_failures(int (*run)(void), int n)
{
    int n_failed = 0;
    int i;

    for (i = 0; i < n; i++)
        n_failed += run() != 0;
    return n_failed;
}

static void
test_many_forks(void)
{
    size_t n = 100 << 20;
    char *memory = mmap(NULL, n, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct profile *p;
    pthread_t hog;

    memset(memory, 1, n);
    session_start(1000);
    pthread_create(&hog, NULL, background_hog, NULL);
    check_equal(count_failures(fork_true, 20), 0,
                "20 forks of a large, busy process at 1000 Hz are fine");
    check_equal(count_failures(vfork_true, 20), 0, "so are 20 vforks");
    check_equal(count_failures(spawn_true, 20), 0, "and 20 posix_spawns");
    check_equal(system("exit 5"), 5 << 8, "and system()");
    __atomic_store_n(&stop_hogs, 1, __ATOMIC_RELAXED);
    pthread_join(hog, NULL);
    p = session_stop();
    check(profile_cpu_in(p, "hog_three") > 0, "and the profile goes on");
    profile_free(p);
    munmap(memory, n);
}

/* --- the child -------------------------------------------------------------
 */

static void
child_burns(void)
{
    hog_two(150 * MS);
    /* Harmless here: the session is the parent's. */
    if (cpprof_cpu_stop(NULL) != CPPROF_OK)
        _exit(1);
    _exit(0);
}

static void
test_child_is_not_sampled(void)
{
    struct profile *p;
    pid_t child;

    session_start(200);
    child = fork();
    if (child == 0)
        child_burns();
    hog_one(150 * MS);
    check_equal(wait_for(child), 0, "a child burns and ends as it likes");
    p = session_stop();
    check_equal(profile_cpu_in(p, "hog_two"), 0,
                "its time is not its parent's");
    check_near((double)profile_cpu_in(p, "hog_one"), 0.15e9, 0.025e9,
               "and the parent goes on being sampled");
    profile_free(p);
}

static void
child_profiles_itself(void)
{
    struct profile *p;
    bool ok;

    session_start(200);
    hog_four(150 * MS);
    p = session_stop();
    ok = profile_cpu_in(p, "hog_four") >= 15 * p->period &&
         profile_cpu_in(p, "hog_one") == 0;
    profile_free(p);
    _exit(!ok);
}

static void
test_child_profiles_itself(void)
{
    struct profile *p;
    pid_t child;

    session_start(0);
    hog_one(100 * MS);
    child = fork();
    if (child == 0)
        child_profiles_itself();
    check_equal(wait_for(child), 0, "a child can have a profile of its own");
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") > 0, "beside its parent's");
    profile_free(p);
}

/* exit() in a child runs atexit handlers and destructors: they must not write
 * the parent's profile. */
static void
test_child_exit(void)
{
    struct profile *p;
    pid_t child;

    session_start(0);
    hog_one(100 * MS);
    fflush(stdout);
    child = fork();
    if (child == 0)
        exit(3);
    check_equal(wait_for(child), 3 << 8, "a child can exit normally");
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") > 0,
          "and the parent writes its profile");
    profile_free(p);
}

/* --- exec ------------------------------------------------------------------
 */

/* The new image: lets every signal in and burns, for many periods. Anything
 * pending kills it, and so does what ticks on. */
static int
burn_after_exec(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    hog_one(25 * MS);
    return 42;
}

static void
block_prof(void)
{
    sigset_t prof;

    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &prof, NULL);
}

static void
exec_while_profiled(bool blocked)
{
    struct cpprof_cpu_options options = session_options(1000);
    char *argv[] = {"cpu_process", "--burn", NULL};
    pthread_t hog;

    signal(SIGPROF, SIG_DFL);
    stop_hogs = 0;
    if (cpprof_cpu_start((struct cpprof_writer[]){fd_writer(-1)}, &options,
                         NULL))
        _exit(8);
    pthread_create(&hog, NULL, background_hog, NULL);
    if (blocked)
        block_prof();
    hog_one(20 * MS);
    execv(self_path, argv);
    _exit(9);
}

static void
test_exec(bool blocked, const char *name)
{
    int n_wrong = 0;
    int status = 0;
    int i;

    for (i = 0; i < 10; i++) {
        pid_t child = fork();

        if (child == 0)
            exec_while_profiled(blocked);
        status = wait_for(child);
        n_wrong += status != 42 << 8;
    }
    if (!check_equal(n_wrong, 0, name))
        note("last wait status %x", status);
}

/* An exec that fails leaves a process that runs, and is sampled, on. */
static void
test_exec_that_fails(void)
{
    char *argv[] = {"missing", NULL};
    struct profile *p;

    session_start(200);
    hog_one(50 * MS);
    check_equal(execv("/nonexistent/missing", argv), -1, "a failing exec");
    check_equal(errno, ENOENT, "returns with its errno");
    hog_two(200 * MS);
    p = session_stop();
    check_near((double)profile_cpu_in(p, "hog_two"), 0.2e9, 0.025e9,
               "and sampling goes on after it");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--burn") == 0)
        return burn_after_exec();
    session_engine(argc, argv);
    test_many_forks();
    test_child_is_not_sampled();
    test_child_profiles_itself();
    test_child_exit();
    test_exec(false, "nothing pending kills the image of an exec");
    test_exec(true, "not even when SIGPROF was blocked");
    test_exec_that_fails();
    return check_done();
}
