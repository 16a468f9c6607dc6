/* SPDX-License-Identifier: MIT */
/*
 * Writes one file of every kind of profile that there is:
 *
 *     kinds_writer DIRECTORY
 *
 * NAME.pb.gz, and NAME.delta.pb.gz of those that have differences.
 */
#include <cpprof/captures.h>
#include <cpprof/heap.h>
#include <cpprof/labels.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *directory;
static struct cpprof_error error;

static void
check(enum cpprof_status status, const char *what)
{
    if (status == CPPROF_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, error.text);
    exit(1);
}

static struct cpprof_writer
file(const char *name, const char *suffix)
{
    struct cpprof_writer writer;
    char path[4096];

    snprintf(path, sizeof path, "%s/%s%s.pb.gz", directory, name, suffix);
    check(cpprof_writer_to_path(path, &writer, &error), path);
    return writer;
}

/* ---- the program ------------------------------------------------------- */

static void *volatile block;
static volatile unsigned work;

static __attribute__((noinline)) void
spin(void)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 4;

    while (clock() < end)
        work++;
}

/* A thread that is there until all is written. */
static int gate[2];

static void *
sleeper(void *arg)
{
    char c;

    return read(gate[0], &c, 1) < 0 ? arg : NULL;
}

static __attribute__((noinline)) void
do_some_of_all(struct cpprof_profile *profile, const char *value)
{
    int i;

    for (i = 0; i < 10; i++)
        block = malloc((size_t)(100 << i));
    free(block);
    cpprof_block_add(5000, 0);
    cpprof_profile_add(profile, value, 0, NULL);
}

/* ---- files ------------------------------------------------------------- */

static const char *const names[] = {"allocs", "block",  "goroutine",   "heap",
                                    "mutex",  "things", "threadcreate"};
#define N_NAMES (sizeof names / sizeof *names)

static void
write_named(struct cpprof_profile *profile)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .flags = CPPROF_FLAG_LABELS};
    struct cpprof_snapshot *snapshots[N_NAMES];
    pthread_t thread;
    size_t i;

    for (i = 0; i < N_NAMES; i++)
        check(cpprof_snapshot_new(cpprof_profile_lookup(names[i]), &options,
                                  &snapshots[i], &error),
              names[i]);
    if (pipe(gate) || pthread_create(&thread, NULL, sleeper, NULL))
        exit(1);
    do_some_of_all(profile, names[1]);
    for (i = 0; i < N_NAMES; i++) {
        check(cpprof_profile_write(cpprof_profile_lookup(names[i]),
                                   (struct cpprof_writer[]){file(names[i], "")},
                                   &options, &error),
              names[i]);
        check(cpprof_snapshot_write_delta(
                  snapshots[i],
                  (struct cpprof_writer[]){file(names[i], ".delta")}, NULL,
                  &error),
              names[i]);
        cpprof_snapshot_free(snapshots[i]);
    }
    close(gate[1]);
    pthread_join(thread, NULL);
}

static void
write_of_time(void)
{
    check(cpprof_cpu_start((struct cpprof_writer[]){file("cpu", "")}, NULL,
                           &error),
          "cpu");
    spin();
    check(cpprof_cpu_stop(&error), "cpu");
    check(cpprof_wall_start((struct cpprof_writer[]){file("wall", "")}, NULL,
                            &error),
          "wall");
    spin();
    check(cpprof_wall_stop(&error), "wall");
}

int
main(int argc, char **argv)
{
    struct cpprof_profile *profile;

    if (argc != 2)
        return 2;
    directory = argv[1];
    cpprof_heap_set_rate(1);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    check(cpprof_profile_new("things", &profile, &error), "things");
    CPPROF_LABELS_SCOPE("job", "night", "shard", "7");
    do_some_of_all(profile, names[0]);
    write_named(profile);
    write_of_time();
    return 0;
}
