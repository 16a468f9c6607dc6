/* SPDX-License-Identifier: MIT */
/*
 * Eight native threads, each with interpreters of its own that come and go,
 * while profiles of every mode start and stop: for TSan, and for what every
 * profile says.
 *
 *     vm_race [SECONDS]
 */
#include "vm_toy.h"

#include <cpprof/labels.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define N_THREADS   8
#define N_FUNCTIONS 64

static bool stop_all;
static unsigned n_runs[N_THREADS];

static const struct toy_code leaf_code[] = {{TOY_WORK, 1, 3000, NULL},
                                            {TOY_RETURN, 2, 0, NULL}};
static const struct toy_function leaf = {"leaf", "race.toy", 1, leaf_code,
                                         NULL};
static const struct toy_code code[] = {{TOY_CALL, 11, 0, &leaf},
                                       {TOY_WORK, 12, 1000, NULL},
                                       {TOY_CALL, 13, 0, &leaf},
                                       {TOY_REPEAT, 14, 20, NULL},
                                       {TOY_RETURN, 15, 0, NULL}};

/* Functions that come and go at the same places, and stacks that do. */
static void *
interpret(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg, turn = 0;
    struct toy_function functions[N_FUNCTIONS];
    char names[N_FUNCTIONS][32];
    struct cpprof_labels *set = cpprof_labels_new("thread", "race", NULL);

    cpprof_labels_set_current(set);
    while (!__atomic_load_n(&stop_all, __ATOMIC_RELAXED)) {
        size_t i = turn++ % N_FUNCTIONS;
        struct toy toy;

        snprintf(names[i], sizeof names[i], "f%zu_%zu", me, turn);
        functions[i] = leaf;
        functions[i].name = names[i];
        functions[i].code = code;
        toy_make(&toy);
        toy_run(&toy, &functions[i]);
        cpprof_vm_thread_free(toy.t);
        cpprof_vm_forget_function(toy_vm, &functions[i]);
        __atomic_fetch_add(&n_runs[me], 1, __ATOMIC_RELAXED);
    }
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
    return NULL;
}

/* A thread of ours runs one stack at a time, all of it within the profile. */
static bool
looks_right(const struct profile *p, enum cpprof_vm_mode mode)
{
    size_t i;

    for (i = 0; i < p->n_samples; i++) {
        const struct sample *s = &p->samples[i];
        const char *root = s->n_frames ? s->frames[s->n_frames - 1].name : "";
        const char *top = s->n_frames ? s->frames[0].name : "";

        if (s->cpu_ns <= 0 || (*root != 'f' && *top != '[')) {
            note("mode %d: %lld ns of %s under %s", (int)mode,
                 (long long)s->cpu_ns, top, root);
            return false;
        }
    }
    if (profile_cpu_ns(p) <= p->duration_ns * N_THREADS)
        return true;
    note("mode %d: %lld ns, %lld without an answer, of %lld x %d", (int)mode,
         (long long)profile_cpu_ns(p),
         (long long)profile_cpu_leaf(p, "[no answer]"),
         (long long)p->duration_ns, N_THREADS);
    return false;
}

int
main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    uint64_t until = toy_clock(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
    pthread_t threads[N_THREADS];
    unsigned n_profiles = 0, n_wrong = 0, n_least = UINT32_MAX;
    int64_t n_samples = 0;
    struct toy toy;
    size_t i;

    toy_make(&toy); /* registers */
    for (i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, interpret, (void *)(uintptr_t)i);
    while (toy_clock(CLOCK_MONOTONIC) < until) {
        const struct cpprof_vm_options options = {
            .size = sizeof options,
            .mode = (enum cpprof_vm_mode)(n_profiles % 3),
            .rate_hz = 2000,
            .flags = n_profiles % 2 ? CPPROF_FLAG_MERGE : 0};
        struct profile *p;

        toy_start_with(&options);
        usleep(n_profiles % 7 * 3000);
        p = toy_stop();
        n_wrong += !looks_right(p, options.mode);
        n_samples += (int64_t)p->n_samples;
        profile_free(p);
        n_profiles++;
    }
    __atomic_store_n(&stop_all, true, __ATOMIC_RELAXED);
    for (i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        n_least = n_runs[i] < n_least ? n_runs[i] : n_least;
    }
    cpprof_vm_thread_free(toy.t);
    note("%u profiles, %lld samples, %u runs of the slowest thread", n_profiles,
         (long long)n_samples, n_least);
    check_at_least(n_profiles, 5, "profiles_start_and_stop_under_threads");
    check_at_least((double)n_samples, 10, "threads_are_sampled");
    check_equal(n_wrong, 0, "no_profile_has_time_or_frames_that_never_were");
    check_at_least(n_least, 1, "every_thread_gets_on");
    return check_done();
}
