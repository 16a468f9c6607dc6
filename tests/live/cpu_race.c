/* SPDX-License-Identifier: MIT */
/*
 * Start and stop raced from many threads: exactly one start wins at a time,
 * every writer is closed exactly once, and a profile that was written is whole.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_THREADS 8
#define N_ROUNDS  25

/* A writer into memory that knows what became of it. */
struct memory {
    char *data;
    size_t n;
    int n_closed;
    int failed;
};

struct racer {
    struct memory files[N_ROUNDS];
    int status[N_ROUNDS];
    int n_started;
    int n_stop_failed;
    int n_wrong_text;
};

static struct racer racers[N_THREADS];
static int n_overlaps;

static int
memory_write(void *ctx, const void *data, size_t n_bytes)
{
    struct memory *m = ctx;
    char *more = realloc(m->data, m->n + n_bytes);

    if (!more)
        return 12;
    memcpy(more + m->n, data, n_bytes);
    m->data = more;
    m->n += n_bytes;
    return 0;
}

static int
memory_close(void *ctx, int failed)
{
    struct memory *m = ctx;

    m->n_closed++;
    m->failed = failed;
    return 0;
}

/* Between the return of start and the call of stop, no other start may win,
 * unless another thread stopped the session: so overlaps are counted only by
 * the one thread that both starts and stops. */
static void
round_of(struct racer *r, int i)
{
    struct cpprof_writer writer = {sizeof writer, memory_write, memory_close,
                                   &r->files[i]};
    struct cpprof_cpu_options options = session_options(1000);
    struct cpprof_error error = {0};

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    r->status[i] = cpprof_cpu_start(&writer, &options, &error);
    if (r->status[i] == CPPROF_OK)
        r->n_started++;
    else if (strcmp(error.text, "cpu profiling already in use") != 0)
        r->n_wrong_text++;
    hog_one(1 * MS);
    r->n_stop_failed += cpprof_cpu_stop(NULL) != CPPROF_OK;
}

static void *
race(void *arg)
{
    int i;

    for (i = 0; i < N_ROUNDS; i++)
        round_of(arg, i);
    return NULL;
}

static int
count_bad_files(int *n_whole)
{
    int n_bad = 0;
    int t, i;

    for (t = 0; t < N_THREADS; t++) {
        for (i = 0; i < N_ROUNDS; i++) {
            struct memory *m = &racers[t].files[i];
            bool won = racers[t].status[i] == CPPROF_OK;

            n_bad += m->n_closed != 1 || m->failed == won || won != (m->n > 0);
            *n_whole += won && !m->failed && m->n > 0;
        }
    }
    return n_bad;
}

static int
count_unreadable(void)
{
    int n_bad = 0;
    int t, i;

    for (t = 0; t < N_THREADS; t++) {
        for (i = 0; i < N_ROUNDS; i++) {
            struct memory *m = &racers[t].files[i];
            struct profile *p;
            char why[256];

            if (m->n == 0)
                continue;
            p = profile_unpack(m->data, m->n, why, sizeof why);
            if (!p)
                note("%s", why);
            n_bad += !p;
            profile_free(p);
            free(m->data);
        }
    }
    return n_bad;
}

static void
test_race(void)
{
    pthread_t threads[N_THREADS];
    int n_started = 0, n_wrong = 0, n_stop_failed = 0, n_whole = 0;
    int n_bad;
    int t;

    for (t = 0; t < N_THREADS; t++)
        pthread_create(&threads[t], NULL, race, &racers[t]);
    for (t = 0; t < N_THREADS; t++) {
        pthread_join(threads[t], NULL);
        n_started += racers[t].n_started;
        n_wrong += racers[t].n_wrong_text;
        n_stop_failed += racers[t].n_stop_failed;
    }
    note("%d of %d starts won", n_started, N_THREADS * N_ROUNDS);
    check_at_least(n_started, 2, "of many starts at once some win");
    check_at_most(n_started, N_THREADS * N_ROUNDS, "and not more than all");
    check_equal(n_wrong, 0, "the others are told that it is in use");
    check_equal(n_stop_failed, 0, "every stop is fine");
    n_bad = count_bad_files(&n_whole);
    check_equal(n_bad, 0, "every writer is closed once, as what it became");
    check_equal(n_whole, n_started, "every start that won wrote a file");
    check_equal(count_unreadable(), 0, "every file is a valid profile");
}

/* --- one owner, many who get in the way ------------------------------------
 */

static int stop_hecklers;

static void *
heckle(void *arg)
{
    struct memory *m = arg;

    while (!__atomic_load_n(&stop_hecklers, __ATOMIC_ACQUIRE)) {
        struct cpprof_writer writer = {sizeof writer, memory_write,
                                       memory_close, m};
        struct cpprof_cpu_options options = session_options(0);

        if (cpprof_cpu_start(&writer, &options, NULL) != CPPROF_BUSY)
            __atomic_fetch_add(&n_overlaps, 1, __ATOMIC_RELAXED);
        usleep(100);
    }
    return NULL;
}

static void
test_owner(void)
{
    pthread_t threads[3];
    struct memory ignored[3];
    struct profile *p;
    int t;

    memset(ignored, 0, sizeof ignored);
    session_start(0);
    for (t = 0; t < 3; t++)
        pthread_create(&threads[t], NULL, heckle, &ignored[t]);
    hog_two(300 * MS);
    __atomic_store_n(&stop_hecklers, 1, __ATOMIC_RELEASE);
    for (t = 0; t < 3; t++)
        pthread_join(threads[t], NULL);
    p = session_stop();
    check_equal(n_overlaps, 0, "while one session runs no other starts");
    check(profile_cpu_in(p, "hog_two") > 0, "and it is not disturbed");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_race();
    test_owner();
    return check_done();
}
