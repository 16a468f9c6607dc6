/* SPDX-License-Identifier: MIT */
/*
 * Functions of ours that stand between the program and what it called are in no
 * stack of a CPU profile: making threads, waiting for them, calls with labels.
 */
#include "session.h"
#include "tap.h"

#include <cpprof/labels.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *
nothing(void *arg)
{
    return arg;
}

__attribute__((noinline)) static void
makes_threads(void *seconds)
{
    double end = now() + *(double *)seconds;
    pthread_t thread;

    while (now() < end)
        if (pthread_create(&thread, NULL, nothing, NULL) ||
            pthread_join(thread, NULL))
            bail("no thread");
}

static void
work(double seconds)
{
    struct cpprof_labels *labels = cpprof_labels_new("what", "threads", NULL);

    cpprof_labels_do(labels, makes_threads, &seconds);
    cpprof_labels_free(labels);
}

static size_t
times(const struct sample *s, const char *name)
{
    size_t i, n = 0;

    for (i = 0; i < s->n_frames; i++)
        n += !strncmp(s->frames[i].name, name, strlen(name));
    return n;
}

static size_t
most(const struct profile *p, const char *name)
{
    size_t i, n, found = 0;

    for (i = 0; i < p->n_samples; i++) {
        n = times(&p->samples[i], name);
        found = n > found ? n : found;
    }
    return found;
}

static bool
is_there(const struct profile *p)
{
    return most(p, "makes_threads") && most(p, "pthread_create");
}

int
main(int argc, char **argv)
{
    struct profile *p;

    session_engine(argc, argv);
    p = session_until(500, 1, 8, work, is_there);
    check(is_there(p), "who makes threads is seen");
    check_equal((int64_t)most(p, "pthread_create"), 1,
                "pthread_create stands once in a stack");
    check_equal((int64_t)most(p, "cpprof__call_under"), 0,
                "what calls with labels does not");
    profile_free(p);
    return check_done();
}
