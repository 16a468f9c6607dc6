/* SPDX-License-Identifier: MIT */
/*
 * Threads that make, set, reset and free label sets as fast as they can while
 * all of them are sampled (Go: TestLabelRace, TestGoroutineProfileLabelRace):
 * nothing is read after it was freed, every label is whole, memory stays
 * bounded, and equal sets are one.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4

static int stop;

static void
serve(void *arg)
{
    *(uint64_t *)arg = churn(*(uint64_t *)arg);
}

/* Each request has labels of its own; a few thousand are different. */
static void *
requests(void *arg)
{
    uint64_t seed = (uintptr_t)arg, i;

    for (i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        char number[24];
        struct cpprof_labels *set;

        snprintf(number, sizeof number, "%d", (int)(i % 1000));
        set = cpprof_labels_new("request", number, "same", number, NULL);
        cpprof_labels_do(set, serve, &seed);
        cpprof_labels_set_current(set);
        serve(&seed);
        cpprof_labels_set_current(NULL);
        cpprof_labels_free(set);
    }
    return NULL;
}

/* A set that a new thread inherits and its maker frees at once. */
static void *
child(void *arg)
{
    uint64_t seed = (uintptr_t)arg;

    serve(&seed);
    return NULL;
}

static void *
parents(void *arg)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct cpprof_labels *set =
            cpprof_labels_new("request", "7", "same", "7", NULL);
        pthread_t thread;
        bool made;

        cpprof_labels_set_current(set);
        made = !pthread_create(&thread, NULL, child, arg);
        cpprof_labels_set_current(NULL);
        cpprof_labels_free(set);
        if (made)
            pthread_join(thread, NULL);
    }
    return NULL;
}

static void
work(uint64_t wall)
{
    uint64_t end = wall_ns() + wall;
    pthread_t threads[THREADS];
    size_t i;

    stop = 0;
    for (i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, i ? requests : parents,
                       (void *)(i + 1));
    while (wall_ns() < end)
        hog_one(10 * MS);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static bool
is_whole(const struct sample *s)
{
    return s->n_labels == 0 ||
           (s->n_labels == 2 && !strcmp(s->labels[0].key, "request") &&
            !strcmp(s->labels[1].key, "same") &&
            !strcmp(s->labels[0].text, s->labels[1].text));
}

/* glibc 2.33. */
#if !__GLIBC_PREREQ(2, 33)
#define mallinfo2 mallinfo
#endif

#define LABELLED 20

struct counts {
    size_t n, whole, labelled, hogs;
};

/* What is between two instructions is met by as many chances as there are
 * ticks: perf events bring them in a quarter of the time. A busy machine gives
 * these threads little, so a run may be longer. */
static struct counts
sample(uint32_t rate_hz, uint64_t wall)
{
    struct counts c = {0};
    struct profile *p;
    size_t i;

    session_start(rate_hz);
    work(wall);
    p = session_stop();
    c.n = p->n_samples;
    for (i = 0; i < p->n_samples; i++) {
        c.whole += is_whole(&p->samples[i]);
        c.labelled += p->samples[i].n_labels > 0;
        c.hogs += stack_matches(&p->samples[i], "hog_one") &&
                  p->samples[i].n_labels > 0;
    }
    profile_free(p);
    return c;
}

int
main(int argc, char **argv)
{
    struct counts c;
    unsigned often;
    uint64_t wall;
    size_t before;

    session_engine(argc, argv);
    often = engine == CPPROF_ENGINE_PERF ? 4 : 1;
    work(SECOND / 10); /* what a first time allocates */
    before = mallinfo2().uordblks;
    for (wall = 2 * SECOND / often; wall <= 16 * SECOND; wall *= 2) {
        c = sample(500 * often, wall);
        if (c.labelled >= LABELLED || c.whole != c.n || c.hogs)
            break;
    }
    check_equal((int64_t)c.whole, (int64_t)c.n,
                "labels of a sample belong together");
    check_at_least((double)c.labelled, LABELLED, "samples have labels");
    note("%zu stacks, %zu with labels", c.n, c.labelled);
    check_equal((int64_t)c.hogs, 0, "threads without labels have none");
    check_at_most((double)mallinfo2().uordblks, (double)before + (4 << 20),
                  "no set is kept");
    work(SECOND / 4);
    check(!cpprof_labels_current(), "without a session, too");
    return check_done();
}
