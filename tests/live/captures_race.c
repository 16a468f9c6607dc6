/* SPDX-License-Identifier: MIT */
/*
 * Captures come and go in many threads, of CPU and of wall time and beside the
 * ordinary profile, while the program forks, loads and unloads, and makes
 * threads: all files are whole, and all writers closed once.
 */
#include "load.h"
#include "memory.h"
#include "session.h"
#include "tap.h"

#include <cpprof/captures.h>
#include <cpprof/labels.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 8
#define N_ROUNDS  40

/* ThreadSanitizer comes without the names that are taken over: nobody tells of
 * forks, unloads and threads that end. AddressSanitizer's malloc stays locked
 * in a child when another thread had it. */
#ifdef __SANITIZE_THREAD__
#define ALL_NAMES 0
#define MAY_FORK  0
#else
#define ALL_NAMES 1
#ifdef __SANITIZE_ADDRESS__
#define MAY_FORK 0
#else
#define MAY_FORK 1
#endif
#endif

struct racer {
    unsigned number;
    int n_cpu, n_wall, n_default, n_bad;
};

static int stop;
static int n_forks, n_bad_forks, n_loads;

static bool
is_stopped(void)
{
    return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static enum cpprof_symbolize
some_names(int i)
{
    return i % 8 ? CPPROF_SYMBOLIZE_NONE : CPPROF_SYMBOLIZE_FUNCTIONS;
}

static bool
is_good(struct memory *m)
{
    struct profile *p = memory_profile(m);

    profile_free(p);
    return p != NULL;
}

static void
capture(struct racer *r, int i)
{
    struct cpprof_cpu_options cpu = session_options(500);
    struct cpprof_wall_options wall = {.size = sizeof wall};
    struct cpprof_capture *capture = NULL;
    bool is_wall = (i + (int)r->number) % 3 == 0;
    enum cpprof_status status;
    struct memory m;

    cpu.symbolize = wall.symbolize = some_names(i);
    cpu.flags = i % 4 ? 0 : CPPROF_FLAG_NO_LABELS;
    wall.flags = i % 4 ? 0 : CPPROF_FLAG_OFF_CPU;
    status = is_wall ? cpprof_capture_start_wall(
                           (struct cpprof_writer[]){memory_writer(&m)}, &wall,
                           &capture, NULL)
                     : cpprof_capture_start_cpu(
                           (struct cpprof_writer[]){memory_writer(&m)}, &cpu,
                           &capture, NULL);
    hog_one((uint64_t)(i % 4) * MS);
    if (!status)
        status = cpprof_capture_stop(capture, NULL);
    r->n_bad += status || !is_good(&m);
    r->n_wall += is_wall;
    r->n_cpu += !is_wall;
}

static void
ordinary(struct racer *r)
{
    struct cpprof_cpu_options options = session_options(500);
    struct memory m;

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    if (cpprof_cpu_start((struct cpprof_writer[]){memory_writer(&m)}, &options,
                         NULL))
        return;
    hog_two(MS);
    r->n_bad += cpprof_cpu_stop(NULL) || !is_good(&m);
    r->n_default++;
}

static void *
race(void *arg)
{
    struct racer *r = arg;
    struct cpprof_labels *set;
    char text[32];
    int i;

    for (i = 0; i < N_ROUNDS; i++) {
        snprintf(text, sizeof text, "%u %d", r->number, i);
        set = cpprof_labels_new("round", text, NULL);
        cpprof_labels_set_current(set);
        if (i % 5 == 0 && r->number == 0) /* others would stop it */
            ordinary(r);
        else
            capture(r, i);
        cpprof_labels_set_current(NULL);
        cpprof_labels_free(set);
    }
    return NULL;
}

static void *
short_life(void *arg)
{
    hog_three(MS / 4);
    return arg;
}

static void *
make_threads(void *arg)
{
    while (!is_stopped() && ALL_NAMES) {
        pthread_t threads[4];
        int i, n = 0;

        for (i = 0; i < 4; i++)
            n += !pthread_create(&threads[n], NULL, short_life, NULL);
        while (n)
            pthread_join(threads[--n], NULL);
    }
    return arg;
}

/* A child has its own captures. */
static int
child(void)
{
    struct cpprof_cpu_options options = session_options(500);
    struct cpprof_capture *capture;
    struct memory m;

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    if (cpprof_capture_start_cpu((struct cpprof_writer[]){memory_writer(&m)},
                                 &options, &capture, NULL))
        return 1;
    hog_four(MS);
    if (cpprof_capture_stop(capture, NULL))
        return 2;
    return m.n_closed == 1 && !m.failed && m.n ? 0 : 3;
}

static void *
fork_children(void *arg)
{
    while (!is_stopped() && MAY_FORK) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0)
            _exit(child());
        waitpid(pid, &status, 0);
        n_forks++;
        n_bad_forks += status != 0;
        usleep(5000);
    }
    return arg;
}

static void *
load_and_unload(void *arg)
{
    typedef uint64_t hog_fn(uint64_t);
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

    path[n < 0 ? 0 : n] = 0;
    if (!strrchr(path, '/'))
        return arg;
    strcpy(strrchr(path, '/') + 1, "libplugin_a.so");
    while (!is_stopped() && ALL_NAMES) {
        void *library = dlopen(path, RTLD_NOW);
        hog_fn *hog = library ? (hog_fn *)dlsym(library, "plugin_a_hog") : NULL;

        if (hog)
            hog(MS / 4);
        if (library)
            dlclose(library);
        n_loads += hog != NULL;
        usleep(1000);
    }
    return arg;
}

int
main(int argc, char **argv)
{
    static void *(*const others[])(void *) = {make_threads, fork_children,
                                              load_and_unload};
    static struct racer racers[N_THREADS];
    pthread_t threads[N_THREADS], beside[3];
    struct racer sum = {0};
    unsigned i;

    session_engine(argc, argv);
    /* The library with the names is loaded before there are threads: TSan does
     * not see the loader take memory that was the stack of one. */
    for (i = 0; i < 4; i++)
        capture(&racers[0], (int)i);
    for (i = 0; i < 3; i++)
        pthread_create(&beside[i], NULL, others[i], NULL);
    for (i = 0; i < N_THREADS; i++) {
        racers[i].number = i;
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum.n_cpu += racers[i].n_cpu;
        sum.n_wall += racers[i].n_wall;
        sum.n_default += racers[i].n_default;
        sum.n_bad += racers[i].n_bad;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 3; i++)
        pthread_join(beside[i], NULL);
    note("%d captures of CPU and %d of wall time, %d ordinary profiles, "
         "%d forks, %d loads",
         sum.n_cpu, sum.n_wall, sum.n_default, n_forks, n_loads);
    check_equal(sum.n_bad, 0, "every capture is a whole profile");
    check_equal(sum.n_default, N_ROUNDS / 5,
                "captures keep no ordinary profile from running");
    check_equal(n_bad_forks, 0, "children capture on their own");
    if (MAY_FORK)
        check_at_least(n_forks, 5, "there were children");
    if (ALL_NAMES)
        check_at_least(n_loads, 20, "and libraries that came and went");
    return check_done();
}
