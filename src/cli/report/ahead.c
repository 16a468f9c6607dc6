/* SPDX-License-Identifier: MIT */
/*
 * A ring of places, one for each file that may be in memory. Threads take
 * numbers of files in order and fill their places; the one that adds up empties
 * them in order.
 *
 * Invariants: all is under the lock but reading itself; a file is begun only
 * when its place is empty, so n_begun <= n_taken + n_places.
 */
#include "cli/report/ahead.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

/* Fewer files are read faster than threads are made. */
#define LEAST_FILES 64

#define MOST_THREADS 16

struct place {
    bool is_full;
    enum cpprof_status status;
    struct pprof_profile *profile;
    struct cpprof_error error;
};

struct cpprof__ahead {
    char *const *paths;
    size_t n, n_begun, n_taken;
    bool is_over;
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    pthread_t threads[MOST_THREADS];
    unsigned n_threads;
    size_t n_places;
    struct place places[2 * MOST_THREADS];
};

/* False: there is nothing more to read. */
static bool
begin_one(struct cpprof__ahead *a, size_t *i)
{
    bool is_one;

    pthread_mutex_lock(&a->lock);
    while (!a->is_over && a->n_begun < a->n &&
           a->n_begun == a->n_taken + a->n_places)
        pthread_cond_wait(&a->emptied, &a->lock);
    is_one = !a->is_over && a->n_begun < a->n;
    *i = is_one ? a->n_begun++ : 0;
    pthread_mutex_unlock(&a->lock);
    return is_one;
}

static void *
read_ahead(void *arg)
{
    struct cpprof__ahead *a = arg;
    size_t i;

    while (begin_one(a, &i)) {
        struct place *place = &a->places[i % a->n_places];

        place->status =
            pprof_read_path(a->paths[i], NULL, &place->profile, &place->error);
        pthread_mutex_lock(&a->lock);
        place->is_full = true;
        pthread_cond_signal(&a->filled);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

static unsigned
n_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);

    return n < MOST_THREADS ? (unsigned)n : MOST_THREADS;
}

struct cpprof__ahead *
cpprof__ahead_begin(char *const *paths, size_t n)
{
    unsigned i, n_threads = n_processors();
    struct cpprof__ahead *a;

    if (n < LEAST_FILES || n_threads < 2)
        return NULL;
    a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->paths = paths;
    a->n = n;
    a->n_places = 2 * (size_t)n_threads;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->filled, NULL);
    pthread_cond_init(&a->emptied, NULL);
    for (i = 0; i < n_threads; i++)
        if (!pthread_create(&a->threads[a->n_threads], NULL, read_ahead, a))
            a->n_threads++;
    if (a->n_threads)
        return a;
    cpprof__ahead_end(a);
    return NULL;
}

enum cpprof_status
cpprof__ahead_next(struct cpprof__ahead *a, struct pprof_profile **profile,
                   struct cpprof_error *error)
{
    struct place *place = &a->places[a->n_taken % a->n_places];
    enum cpprof_status status;

    pthread_mutex_lock(&a->lock);
    while (!place->is_full)
        pthread_cond_wait(&a->filled, &a->lock);
    status = place->status;
    if (status == CPPROF_OK)
        *profile = place->profile;
    else
        *error = place->error;
    *place = (struct place){0};
    a->n_taken++;
    pthread_cond_signal(&a->emptied);
    pthread_mutex_unlock(&a->lock);
    return status;
}

void
cpprof__ahead_end(struct cpprof__ahead *a)
{
    unsigned i;

    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->is_over = true;
    pthread_cond_broadcast(&a->emptied);
    pthread_mutex_unlock(&a->lock);
    for (i = 0; i < a->n_threads; i++)
        pthread_join(a->threads[i], NULL);
    for (i = 0; i < a->n_places; i++)
        if (a->places[i].is_full && a->places[i].status == CPPROF_OK)
            pprof_free(a->places[i].profile);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->filled);
    pthread_cond_destroy(&a->emptied);
    free(a);
}
