/* SPDX-License-Identifier: MIT */
/*
 * Fills every kind of profile with something and writes each in all its forms:
 *
 *     forms_writer DIRECTORY
 *
 * NAME.pb.gz, NAME.text (debug=1) and NAME.legacy. Between the forms of one
 * profile nothing is recorded.
 */
#include <cpprof/heap.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define N_THREADS 12
#define FRACTION  5

static sem_t sleepers; /* posted at the end */
static pthread_barrier_t all_there;
static int waited_for;

/* An event at a stack of so many frames; not a tail call. */
static __attribute__((noinline)) void
block_for(int64_t ns, int depth)
{
    if (depth > 0)
        block_for(ns, depth - 1);
    else
        cpprof_block_add(ns, 0);
    __asm__ volatile("" ::: "memory");
}

/* One contended unlock of a lock of our own, for which another thread waits. */
static void *
wait_once(void *arg)
{
    struct cpprof_wait wait;

    cpprof_wait_begin(&wait, arg);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    cpprof_wait_end(&wait);
    return NULL;
}

static __attribute__((noinline)) void
hold(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, wait_once, &waited_for))
        abort();
    pthread_barrier_wait(&all_there);
    cpprof_wait_released(&waited_for);
    pthread_barrier_wait(&all_there);
    pthread_join(thread, NULL);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void
add(struct cpprof_profile *profile, const char *value, int depth)
{
    if (depth > 0)
        add(profile, value, depth - 1);
    else
        cpprof_profile_add(profile, value, 0, NULL);
    __asm__ volatile("" ::: "memory");
}

static void *
sleeper(void *arg)
{
    (void)arg;
    while (sem_wait(&sleepers))
        continue;
    return NULL;
}

static void *
labelled_sleeper(void *arg)
{
    CPPROF_LABELS_SCOPE("kind", "a \"quoted\" one", "shard", "7");

    return sleeper(arg);
}

static void
write_form(const char *directory, const char *name, size_t form)
{
    static const struct {
        const char *name;
        int32_t debug;
        uint32_t flags;
    } forms[] = {
        {"pb.gz", 0, 0}, {"text", 1, 0}, {"legacy", 0, CPPROF_FLAG_LEGACY}};
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = forms[form].debug,
                                                   .flags = forms[form].flags};
    struct cpprof_writer writer;
    struct cpprof_error error;
    char path[4096];

    snprintf(path, sizeof path, "%s/%s.%s", directory, name, forms[form].name);
    if (cpprof_writer_to_path(path, &writer, &error) != CPPROF_OK ||
        cpprof_profile_write(cpprof_profile_lookup(name), &writer, &options,
                             &error) != CPPROF_OK) {
        fprintf(stderr, "%s: %s\n", path, error.text);
        exit(1);
    }
}

static void
fill(void)
{
    static char values[100];
    struct cpprof_profile *profile;
    int i;

    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(FRACTION);
    pthread_barrier_init(&all_there, NULL, 2);
    for (i = 0; i < 100; i++)
        block_for(1000 * (i + 1), i % 9);
    for (i = 0; i < 40 * FRACTION; i++)
        hold();
    cpprof_block_set_rate(0);
    if (cpprof_profile_new("my.own-profile", &profile, NULL))
        abort();
    for (i = 0; i < 100; i++)
        add(profile, &values[i], i % 7);
}

int
main(int argc, char **argv)
{
    static const char *const names[] = {"block", "mutex", "goroutine",
                                        "threadcreate", "my.own-profile"};
    pthread_t threads[N_THREADS];
    size_t i;

    if (argc != 2)
        return 2;
    sem_init(&sleepers, 0, 0);
    for (i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL,
                           i % 3 ? sleeper : labelled_sleeper, NULL))
            abort();
    fill();
    /* From one place: the caller's own stack is in one of them. */
    for (i = 0; i < 3 * sizeof names / sizeof *names; i++)
        write_form(argv[1], names[i / 3], i % 3);
    for (i = 0; i < N_THREADS; i++)
        sem_post(&sleepers);
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
