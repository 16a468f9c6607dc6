/* SPDX-License-Identifier: MIT */
/*
 * What a sampled program may do that forbids much to it: seccomp's strict mode,
 * in which any system call kills, and a namespace that only a process of one
 * thread may enter.
 */
#include "command.h"
#include "tap.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20
#define N       32

static void *blocks[N];

static void
replace_blocks(void)
{
    size_t i;

    for (i = 0; i < N; i++) {
        free(blocks[i]);
        blocks[i] = malloc(60000);
    }
}

/* Its memory is there before. */
static int
run_strict(void)
{
    int i;

    replace_blocks();
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 77;
    for (i = 0; i < 1000; i++)
        replace_blocks();
    syscall(SYS_exit, 0);
    return 1;
}

static int
run_alone(void)
{
    struct stat st;

    if (stat("/proc/self/task", &st))
        return 77;
    return st.st_nlink == 3 ? 0 : 1; /* ".", ".." and one thread */
}

/* _exit() in a handler that came in the middle of malloc() or free(). */
static void
end_here(int signo)
{
    (void)signo;
    _exit(3);
}

static int
run_interrupted(void)
{
    time_t start = time(NULL);

    signal(SIGALRM, end_here);
    ualarm(20000, 0);
    while (time(NULL) - start < SECONDS)
        replace_blocks();
    return 1;
}

static char folder[] = "/tmp/heap_quiet.XXXXXX";

/* kinds: those that CPPROF asks for, or NULL. */
static int
run(const char *how, const char *kinds)
{
    const char *argv[] = {"/proc/self/exe", how, NULL};
    char words[128];
    const char *environment[] = {words, NULL};
    struct result result;

    snprintf(words, sizeof words, "CPPROF=%s,out=%s/%%k.gz", kinds ? kinds : "",
             folder);
    run_command(argv, kinds ? environment : NULL, 2 * SECONDS, &result);
    return result.status;
}

/* Was that profile written? It is gone then. */
static bool
is_written(const char *kind)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s.gz", folder, kind);
    return unlink(path) == 0;
}

static void
check_strict(const char *kinds, const char *name)
{
    int status = run("strict", kinds);

    if (status == 77 << 8)
        check_skip(name, "no seccomp here");
    else
        check_equal(status, 0, name);
}

int
main(int argc, char **argv)
{
    int i, n_right = 0, n_written = 0;

    if (argc > 1 && !strcmp(argv[1], "strict"))
        return run_strict();
    if (argc > 1 && !strcmp(argv[1], "alone"))
        return run_alone();
    if (argc > 1)
        return run_interrupted();
    if (!mkdtemp(folder))
        bail("mkdtemp");
    check_strict(NULL, "malloc and free make no system call");
    check_strict("heap=64k", "nor do they at a higher rate");
    check_equal(run("alone", "heap,block"), 0,
                "profiles that are written at the end need no thread");
    check(is_written("heap") && is_written("block"), "and are written");
    for (i = 0; i < 10; i++) {
        n_right += run("interrupted", "heap") == 3 << 8;
        n_written += is_written("heap");
    }
    check_equal(n_right, 10, "_exit() in a handler ends the process");
    check_equal(n_written, 10, "and has the profile written");
    check_equal(rmdir(folder), 0, "nothing else is left");
    return check_done();
}
