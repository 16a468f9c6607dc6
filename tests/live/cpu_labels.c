/* SPDX-License-Identifier: MIT */
/*
 * Labels of a thread are on its samples, and on no other's; threads inherit
 * them from their maker (Go: TestCPUProfileLabel, TestLabelSystemstack).
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <cpprof/labels.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* {key: text, "n": 42 bytes} */
static struct cpprof_labels *
label_set(const char *key, const char *text)
{
    const struct cpprof_label labels[] = {
        {.key = "n", .num = 42, .unit = "bytes"}, {.key = key, .str = text}};
    struct cpprof_labels *set;

    if (cpprof_labels_merge(NULL, labels, 2, &set, NULL) != CPPROF_OK)
        bail("out of memory");
    return set;
}

static void *
inherits(void *arg)
{
    hog_three(200 * MS);
    return NULL;
}

static void *
labelled(void *text)
{
    struct cpprof_labels *set = label_set("worker", text);
    pthread_t child;

    cpprof_labels_set_current(set);
    hog_one(200 * MS);
    pthread_create(&child, NULL, inherits, NULL);
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
    pthread_join(child, NULL);
    hog_four(200 * MS);
    return NULL;
}

static void
work(double seconds)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, labelled, "a");
    pthread_create(&threads[1], NULL, labelled, "b");
    hog_two(200 * MS);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

/* CPU time in function, with any label or with none. */
static int64_t
cpu_in(const struct profile *p, const char *function, bool with_labels)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < p->n_samples; i++)
        if (stack_matches(&p->samples[i], function) &&
            (p->samples[i].n_labels > 0) == with_labels)
            sum += p->samples[i].cpu_ns;
    return sum;
}

static void
test_labels(void)
{
    const struct sample *s = NULL;
    struct profile *p;
    size_t i;

    session_start(0);
    work(0);
    p = session_stop();
    check_near((double)cpu_in(p, "hog_one", true), 0.4e9, 0.05e9,
               "samples of a labelled thread have its labels");
    check_equal(cpu_in(p, "hog_one", false), 0, "all of them");
    check_near((double)cpu_in(p, "hog_three", true), 0.4e9, 0.05e9,
               "a thread inherits the labels of its maker");
    check_equal(cpu_in(p, "hog_two", true), 0, "other threads have none");
    check_equal(cpu_in(p, "hog_four", true), 0,
                "and none are there once they were taken off");
    check_near((double)profile_cpu_labelled(p, "worker", "a"), 0.4e9, 0.06e9,
               "each thread has its own value: a");
    check_near((double)profile_cpu_labelled(p, "worker", "b"), 0.4e9, 0.06e9,
               "and b");
    for (i = 0; i < p->n_samples; i++)
        if (p->samples[i].n_labels)
            s = &p->samples[i];
    check(s && s->n_labels == 2 && strcmp(s->labels[0].key, "n") == 0 &&
              s->labels[0].number == 42,
          "a number is one");
    profile_note(p, 4);
    profile_free(p);
}

static void
test_no_labels(void)
{
    struct cpprof_cpu_options options = session_options(0);
    struct profile *p;

    options.flags = CPPROF_FLAG_NO_LABELS;
    session_start_with(&options);
    work(0);
    p = session_stop();
    check_equal(cpu_in(p, "hog_one", true), 0,
                "CPPROF_FLAG_NO_LABELS leaves them out");
    check_at_least((double)cpu_in(p, "hog_one", false), 0.35e9,
                   "and nothing else");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_labels();
    test_no_labels();
    return check_done();
}
