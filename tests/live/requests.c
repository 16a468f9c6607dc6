/* SPDX-License-Identifier: MIT */
/*
 * A server that labels each of 100 000 requests with an id of its own, and is
 * sampled all the while: tables are full and recycled on the way, sums stay
 * exact, the last request has its labels, and memory has a bound. So it is in a
 * child that was forked in the midst.
 */
#include "load.h"
#include "memory.h"
#include "session.h"
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUESTS 100000

/* In kB, from /proc/self/status. */
static double
resident_kb(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    double kb = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %lf", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

__attribute__((noinline)) static void
serve(void)
{
    void *volatile p = malloc(2000);

    free(p);
    cpprof_block_add(1000, 0);
}

static void
request(const char *kind, int i, uint64_t cpu_ns)
{
    struct cpprof_labels *set;
    char id[32];

    snprintf(id, sizeof id, "%s%d", kind, i);
    set = cpprof_labels_new("request", id, NULL);
    cpprof_labels_set_current(set);
    serve();
    if (cpu_ns)
        hog_one(cpu_ns);
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
}

static bool
has_request(const struct profile *p, const char *id)
{
    size_t i, k;

    for (i = 0; p && i < p->n_samples; i++)
        for (k = 0; k < p->samples[i].n_labels; k++)
            if (!strcmp(p->samples[i].labels[k].key, "request") &&
                !strcmp(p->samples[i].labels[k].text, id))
                return true;
    return false;
}

static struct profile *
heap(void)
{
    struct cpprof_heap_options options = {.size = sizeof options,
                                          .flags = CPPROF_FLAG_LABELS};
    struct memory m;
    struct cpprof_writer writer = memory_writer(&m);

    if (cpprof_heap_write(&writer, &options, NULL) != CPPROF_OK)
        return NULL;
    return memory_profile(&m);
}

static struct profile *
block(void)
{
    struct cpprof_profile_options options = {.size = sizeof options,
                                             .flags = CPPROF_FLAG_LABELS};
    struct memory m;
    struct cpprof_writer writer = memory_writer(&m);

    if (cpprof_profile_write(cpprof_profile_lookup("block"), &writer, &options,
                             NULL) != CPPROF_OK)
        return NULL;
    return memory_profile(&m);
}

/* What each process says of its own requests; the last is `id`. */
static bool
tables_have(const char *id, int64_t n)
{
    struct profile *p = block(), *h = heap();
    bool good = p && h && profile_count(p) == n && has_request(p, id) &&
                has_request(h, id);

    if (!good)
        note("%lld waits of %lld; %s: block %d, heap %d",
             p ? (long long)profile_count(p) : -1, (long long)n, id,
             has_request(p, id), has_request(h, id));
    if (p)
        profile_free(p);
    if (h)
        profile_free(h);
    return good;
}

static pid_t
fork_child(void)
{
    pid_t pid = fork();
    int i;

    if (pid)
        return pid;
    for (i = 0; i < REQUESTS; i++)
        request("child", i, 0);
    _exit(!tables_have("child99999", REQUESTS));
}

int
main(int argc, char **argv)
{
    struct memory wall;
    struct cpprof_writer wall_writer = memory_writer(&wall);
    struct profile *p;
    pid_t child = -1;
    int i, status = -1;
    double before;

    session_engine(argc, argv);
    cpprof_labels_keep(1);
    cpprof_heap_set_rate(1);
    cpprof_block_set_rate(1);
    session_start(0);
    if (cpprof_wall_start(&wall_writer, NULL, NULL) != CPPROF_OK)
        bail("no wall profile");
    before = resident_kb();
    for (i = 0; i < REQUESTS; i++) {
        if (i == REQUESTS / 2)
            child = fork_child();
        request("", i, i == REQUESTS - 1 ? SECOND : 0);
    }
    check_at_most(resident_kb() - before, 128 << 10, "memory has a bound, kB");
    check(tables_have("99999", REQUESTS), "tables are exact");
    cpprof_wall_stop(NULL);
    p = memory_profile(&wall);
    check(has_request(p, "99999"), "the last request is in the wall profile");
    if (p)
        profile_free(p);
    p = session_stop();
    check(has_request(p, "99999"), "the last request is in the CPU profile");
    profile_free(p);
    waitpid(child, &status, 0);
    check_equal(status, 0, "tables of a forked child are exact");
    return check_done();
}
