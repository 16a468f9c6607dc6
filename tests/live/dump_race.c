/* SPDX-License-Identifier: MIT */
/*
 * Everything that asks threads for their stacks, at the same time, while
 * threads come and go and labels change: for the sanitizers, and for what
 * hangs or crashes.
 */
#include "dump.h"
#include "load.h"
#include "race.h"
#include "tap.h"

#include <cpprof/cpprof.h>
#include <cpprof/labels.h>
#include <cpprof/wall.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static struct cpprof_labels *sets[2];

static void *
worker(void *arg)
{
    unsigned i = 0;
    volatile uint64_t seed = 1;

    while (!atomic_load(&enough)) {
        cpprof_labels_set_current(sets[i++ % 2]);
        seed = churn(seed);
        if (i % 64 == 0)
            usleep(500);
    }
    cpprof_labels_set_current(NULL);
    return arg;
}

static void *
guest(void *arg)
{
    usleep(200);
    return arg;
}

static void *
host(void *arg)
{
    while (!atomic_load(&enough)) {
        pthread_t thread;

        if (!pthread_create(&thread, NULL, guest, NULL))
            pthread_join(thread, NULL);
    }
    return arg;
}

static atomic_int n_dumps;

static void *
dumper(void *arg)
{
    while (!atomic_load(&enough)) {
        free(dump_text("goroutine", 1));
        free(dump_text("threadcreate", 1));
        free(dump_text("goroutine", 2));
        atomic_fetch_add(&n_dumps, 1);
    }
    return arg;
}

static atomic_int n_walls;

static void *
waller(void *arg)
{
    while (!atomic_load(&enough)) {
        const struct cpprof_wall_options options = {.size = sizeof options,
                                                    .rate_hz = 1000,
                                                    .symbolize =
                                                        CPPROF_SYMBOLIZE_NONE};
        struct cpprof_writer writer;

        if (cpprof_writer_to_path("/dev/null", &writer, NULL) ||
            cpprof_wall_start(&writer, &options, NULL))
            bail("wall profile");
        usleep(50000);
        if (cpprof_wall_stop(NULL))
            bail("wall profile");
        atomic_fetch_add(&n_walls, 1);
    }
    return arg;
}

int
main(void)
{
    void *(*const roles[])(void *) = {worker, worker, host,
                                      dumper, dumper, waller};

    sets[0] = cpprof_labels_new("set", "0", NULL);
    sets[1] = cpprof_labels_new("set", "1", NULL);
    race(roles, sizeof roles / sizeof *roles, 20);
    check_at_least(atomic_load(&n_dumps), 2, "dumps_were_taken");
    check_at_least(atomic_load(&n_walls), 2, "wall_profiles_were_taken");
    cpprof_labels_free(sets[0]);
    cpprof_labels_free(sets[1]);
    return check_done();
}
