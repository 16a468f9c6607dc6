/* SPDX-License-Identifier: MIT */
/*
 * An exec needs no thread of ours: it goes on, and the new image lives, also
 * where the drainer gets no processor (a program of SCHED_FIFO takes all of
 * them). Here a tracer stops the drainer, so nothing is left to chance. The
 * arguments are long, so that the kernel takes several ticks for the exec.
 */
#include "load.h"
#include "session.h"
#include "tap.h"
#include "writers.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_WORDS   15
#define N_BYTES   100000
#define N_TIMES   5
#define RATE_HZ   5000
#define LIVES     42
#define NO_PTRACE 43

static bool
is_ours(const char *tid)
{
    char path[300], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/task/%s/comm", (int)getppid(), tid);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(name, sizeof name, file))
        *name = 0;
    fclose(file);
    return !strncmp(name, "cpprof", 6);
}

/* How many threads of ours the parent has, all of which are stopped now. */
static int
stop_ours(void)
{
    char path[64];
    struct dirent *entry;
    int n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", (int)getppid());
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        pid_t tid = atoi(entry->d_name);

        if (!tid || tid == getppid() || !is_ours(entry->d_name))
            continue;
        if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) ||
            ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
            waitpid(tid, NULL, __WALL) != tid)
            return 0;
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* They end by the exec, which waits until somebody has waited for them. */
static bool
stop_drainer(void)
{
    int ready[2];
    char x = 0;

    if (pipe(ready))
        return false;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (fork() == 0) {
        alarm(60);
        x = stop_ours() > 0;
        if (write(ready[1], &x, 1) != 1)
            _exit(1);
        while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
            continue;
        _exit(0);
    }
    if (read(ready[0], &x, 1) != 1)
        x = 0;
    close(ready[0]);
    close(ready[1]);
    return x;
}

static void *
stop_profiling(void *arg)
{
    cpprof_cpu_stop(NULL); /* waits for the drainer */
    return arg;
}

static void
exec_without_drainer(bool ends)
{
    static char *words[N_WORDS + 3], word[N_BYTES + 1];
    struct cpprof_cpu_options options = session_options(RATE_HZ);
    pthread_t thread;
    int i;

    memset(word, 'x', N_BYTES);
    words[0] = "cpu_exec";
    words[1] = "--lives";
    for (i = 0; i < N_WORDS; i++)
        words[2 + i] = word;
    if (cpprof_cpu_start((struct cpprof_writer[]){fd_writer(-1)}, &options,
                         NULL))
        _exit(8);
    hog_one(200 * MS);
    if (!stop_drainer())
        _exit(NO_PTRACE);
    if (ends) {
        pthread_create(&thread, NULL, stop_profiling, NULL);
        usleep(20000);
    }
    execv("/proc/self/exe", words);
    _exit(9);
}

static void
test_exec(bool ends, const char *name)
{
    int n_wrong = 0, last = 0, status = 0, i;

    for (i = 0; i < N_TIMES; i++) {
        pid_t child = fork();

        if (child == 0)
            exec_without_drainer(ends);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status == NO_PTRACE << 8) {
            check_skip(name, "ptrace is not allowed");
            return;
        }
        if (status != LIVES << 8) {
            n_wrong++;
            last = status;
        }
    }
    if (!check_equal(n_wrong, 0, name))
        note("last wait status %x", last);
}

static void
try_execs(double seconds)
{
    char *words[] = {"none", NULL};
    double done;

    for (done = 0; done < seconds; done += 0.005) {
        hog_one(5000000);
        execv("/nonexistent/none", words);
    }
}

/* "engine perf, 100 Hz asked, 98 Hz delivered and weighed", where they differ.
 */
static double
ticks_each_second(const struct profile *p)
{
    const char *said = profile_comment(p, "Hz delivered");

    return said ? atof(strstr(said, "asked, ") + strlen("asked, ")) : 100;
}

static bool
has_most_ticks(const struct profile *p)
{
    return ticks_each_second(p) >= 50;
}

/* An exec that fails changes nothing. */
static void
test_failing_execs(void)
{
    struct profile *p = session_until(100, 1, 4, try_execs, has_most_ticks);

    check_at_least(ticks_each_second(p), 50,
                   "execs that fail stop no sampling");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--lives") == 0)
        return LIVES;
    session_engine(argc, argv);
    test_exec(false, "the new image lives where the drainer does not run");
    test_exec(true, "and where a thread waits for the end of the profile");
    test_failing_execs();
    return check_done();
}
