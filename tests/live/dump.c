/* SPDX-License-Identifier: MIT */
/*
 * Dumps of threads as decoded profiles and as text, and crowds of threads that
 * sleep to be seen in them.
 */
#include "dump.h"
#include "tap.h"

#include <cpprof/profiles.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct memory {
    char *data;
    size_t n;
    FILE *file;
};

static int
memory_write(void *ctx, const void *data, size_t n)
{
    struct memory *m = ctx;

    return fwrite(data, 1, n, m->file) == n ? 0 : -1;
}

static int
memory_close(void *ctx, int failed)
{
    return fclose(((struct memory *)ctx)->file);
}

static struct memory
write_profile(const char *name, int debug)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = debug};
    struct memory memory = {NULL, 0, NULL};
    struct cpprof_error error;

    memory.file = open_memstream(&memory.data, &memory.n);
    if (!memory.file)
        bail("no memory");
    if (cpprof_profile_write(
            cpprof_profile_lookup(name),
            &(struct cpprof_writer){sizeof(struct cpprof_writer), memory_write,
                                    memory_close, &memory},
            &options, &error))
        bail("%s: %s", name, error.text);
    return memory;
}

struct profile *
dump_take(const char *name)
{
    struct memory memory = write_profile(name, 0);
    char why[256];
    struct profile *p = profile_unpack(memory.data, memory.n, why, sizeof why);

    if (!p)
        bail("%s: %s", name, why);
    free(memory.data);
    return p;
}

char *
dump_text(const char *name, int debug)
{
    return write_profile(name, debug).data;
}

static bool
has_function(const struct sample *s, const char *function)
{
    size_t i;

    for (i = 0; i < s->n_frames; i++)
        if (frame_is(&s->frames[i], function))
            return true;
    return false;
}

int64_t
dump_count(const struct profile *p, const char *function)
{
    int64_t n = 0;
    size_t i;

    for (i = 0; i < p->n_samples; i++)
        if (!function || has_function(&p->samples[i], function))
            n += p->samples[i].count;
    return n;
}

/* ---- threads ---------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_waiting, n_leave;

void
crowd_wait(void)
{
    pthread_mutex_lock(&lock);
    n_waiting++;
    pthread_cond_broadcast(&changed);
    while (!n_leave)
        pthread_cond_wait(&changed, &lock);
    n_waiting--;
    pthread_mutex_unlock(&lock);
}

void
crowd_open(void)
{
    n_leave = 0;
}

struct crowd
crowd_make(int n, void *(*routine)(void *))
{
    struct crowd crowd = {calloc((size_t)n, sizeof(pthread_t)), n};
    pthread_attr_t attr;
    int i;

    crowd_open();
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    for (i = 0; i < n; i++)
        if (pthread_create(&crowd.threads[i], &attr, routine, NULL))
            bail("pthread_create: thread %d", i);
    pthread_attr_destroy(&attr);
    pthread_mutex_lock(&lock);
    while (n_waiting < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return crowd;
}

void
crowd_end(struct crowd *crowd)
{
    int i;

    pthread_mutex_lock(&lock);
    n_leave = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (i = 0; i < crowd->n; i++)
        pthread_join(crowd->threads[i], NULL);
    free(crowd->threads);
}
