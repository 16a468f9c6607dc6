/* SPDX-License-Identifier: MIT */
/*
 * Libraries that come and go while the process is sampled: no crash, and what
 * ran in them keeps its name, also when another one lies at its address now.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t (*plugin_function)(uint64_t cpu_ns);

static char plugin_a[512], plugin_b[512];

/* The plug-ins lie beside this program. */
static void
find_plugins(void)
{
    char self[400] = {0};
    char *slash;

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        bail("/proc/self/exe cannot be read");
    slash = strrchr(self, '/');
    *slash = 0;
    snprintf(plugin_a, sizeof plugin_a, "%s/libplugin_a.so", self);
    snprintf(plugin_b, sizeof plugin_b, "%s/libplugin_b.so", self);
}

/* Load, run for so long, unload; where it lay. */
static void *
visit(const char *path, const char *name, uint64_t cpu_ns)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *at;

    if (!library)
        bail("%s", dlerror());
    at = dlsym(library, name);
    if (!at)
        bail("%s", dlerror());
    load_sink = ((plugin_function)at)(cpu_ns);
    if (dlclose(library))
        bail("%s", dlerror());
    return at;
}

static void
test_names_stay(void)
{
    struct profile *p;
    int n_same = 0;
    double total;
    int i;

    session_start(0);
    for (i = 0; i < 6; i++) {
        void *a = visit(plugin_a, "plugin_a_hog", 100 * MS);
        void *b = visit(plugin_b, "plugin_b_hog", 50 * MS);

        n_same += a == b;
    }
    p = session_stop();
    total = (double)profile_cpu_ns(p);
    note("%d of 6 pairs lay at the same address", n_same);
    check_near((double)profile_cpu_in(p, "plugin_a_hog") / total, 2.0 / 3, 0.1,
               "a library that was unloaded keeps its name and its share");
    check_near((double)profile_cpu_in(p, "plugin_b_hog") / total, 1.0 / 3, 0.1,
               "and so does the one that came in its place");
    profile_note(p, 6);
    profile_free(p);
}

static int stop_loaders;
static int n_loads;

static void *
load_in_a_loop(void *arg)
{
    while (!__atomic_load_n(&stop_loaders, __ATOMIC_RELAXED)) {
        visit(plugin_a, "plugin_a_hog", 100000);
        visit(plugin_b, "plugin_b_hog", 100000);
        __atomic_fetch_add(&n_loads, 2, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void
test_loop(void)
{
    struct profile *p;
    pthread_t threads[2];
    int i;

    session_start(1000);
    for (i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, load_in_a_loop, NULL);
    hog_one(750 * MS);
    __atomic_store_n(&stop_loaders, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    p = session_stop();
    note("%d loads", n_loads);
    check_at_least(n_loads, 100, "dlopen and dlclose in a loop go on");
    check_at_least((double)profile_cpu_in(p, "hog_one"), 0.6e9,
                   "while other threads are sampled");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    find_plugins();
    session_engine(argc, argv);
    test_names_stay();
    test_loop();
    return check_done();
}
