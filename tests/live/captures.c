/* SPDX-License-Identifier: MIT */
/*
 * Several CPU captures at once: each shows its own stretch and no other, what
 * they have in common is in all of them, and none ends another.
 */
#include "capture.h"
#include "command.h"
#include "load.h"
#include "session.h"

#include <cpprof/labels.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_MAX 128

static enum cpprof_status
try_begin(struct one *c, const struct cpprof_cpu_options *options,
          struct cpprof_error *error)
{
    return cpprof_capture_start_cpu(
        (struct cpprof_writer[]){memory_writer(&c->file)}, options, &c->capture,
        error);
}

static void
begin_with(struct one *c, uint32_t flags)
{
    struct cpprof_cpu_options options = session_options(200);
    struct cpprof_error error = {0};

    options.flags = flags;
    if (try_begin(c, &options, &error))
        bail("capture: %s", error.text);
}

static void
begin(struct one *c)
{
    begin_with(c, 0);
}

/* Ticks of the kernel come at 250 Hz or more: what one of them is too early or
 * late at both ends of a stretch. */
#define EDGE 0.03

static void
test_overlap(void)
{
    struct one a, b;
    struct profile *p, *q;

    begin(&a);
    hog_one(400 * MS);
    begin(&b);
    hog_two(400 * MS);
    p = end(&a);
    hog_three(400 * MS);
    q = end(&b);
    check_near(seconds_in(p, "hog_one"), 0.4, EDGE,
               "the first capture has what came before the second");
    check_near(seconds_in(p, "hog_two"), 0.4, EDGE,
               "and what both were there for");
    check_near(seconds_in(p, "hog_three"), 0, EDGE / 4,
               "but nothing of after its end");
    check_near(seconds_in(q, "hog_one"), 0, EDGE / 4,
               "the second capture has nothing of before its beginning");
    check_near(seconds_in(q, "hog_two"), 0.4, EDGE,
               "it has what both were there for");
    check_near(seconds_in(q, "hog_three"), 0.4, EDGE,
               "and what came after the end of the first");
    check_at_least((double)(q->time_ns - p->time_ns) / 1e9, 0.39,
                   "the time of a capture is that of its beginning");
    check_at_least((double)q->duration_ns / 1e9, 0.79,
                   "its duration is its own");
    check_at_most((double)p->duration_ns / (double)q->duration_ns, 3,
                  "whatever the others take");
    profile_free(p);
    profile_free(q);
}

static void
test_adjacent(void)
{
    struct one whole, part;
    struct profile *p;
    double parts =
        0; /* of the work: between them, files are written and read */
    int i;

    begin(&whole);
    for (i = 0; i < 5; i++) {
        begin(&part);
        hog_one(100 * MS);
        p = end(&part);
        parts += seconds_in(p, "hog_one");
        profile_free(p);
    }
    p = end(&whole);
    note("%.2f s in parts, %.2f s in the whole", parts,
         seconds_in(p, "hog_one"));
    check_near(parts, seconds_in(p, "hog_one"), 0.06,
               "adjacent captures add up to one over them all");
    check_at_least((double)profile_count(p), 80, "which has samples");
    profile_free(p);
}

/* --- beside the ordinary profile ------------------------------------------ */

static void
test_ordinary_in_capture(void)
{
    struct cpprof_error error = {0};
    struct memory refused;
    struct profile *p, *q;
    struct one c;

    begin(&c);
    hog_one(200 * MS);
    session_start(200);
    check_equal(
        cpprof_cpu_start((struct cpprof_writer[]){memory_writer(&refused)},
                         NULL, &error),
        CPPROF_BUSY, "a second ordinary profile is refused");
    check_text(error.text, "cpu profiling already in use", "in Go's words");
    hog_two(200 * MS);
    p = session_stop();
    hog_three(200 * MS);
    q = end(&c);
    check_near(seconds_in(p, "hog_two"), 0.2, EDGE,
               "an ordinary profile within a capture has its own stretch");
    check_near(seconds_in(p, "hog_one") + seconds_in(p, "hog_three"), 0, EDGE,
               "and nothing else");
    check_near(seconds_in(q, "hog_one") + seconds_in(q, "hog_three"), 0.4,
               2 * EDGE, "its end does not end the capture");
    profile_free(p);
    profile_free(q);
}

static void
test_capture_in_ordinary(void)
{
    struct profile *p, *q;
    struct one c;

    session_start(200);
    hog_one(200 * MS);
    begin(&c);
    hog_two(200 * MS);
    q = end(&c);
    hog_three(200 * MS);
    p = session_stop();
    check_near(seconds_in(q, "hog_two"), 0.2, EDGE,
               "a capture within an ordinary profile has its own stretch");
    check_near(seconds_in(q, "hog_one"), 0, EDGE / 4, "and nothing else");
    check_near(seconds_in(p, "hog_one") + seconds_in(p, "hog_two") +
                   seconds_in(p, "hog_three"),
               0.6, 2 * EDGE, "the ordinary profile has everything");
    profile_free(p);
    profile_free(q);
}

/* The rate of a session that runs is that of all. */
static void
test_rate(void)
{
    struct cpprof_cpu_options options = session_options(50);
    struct one a, b;
    struct profile *p;

    begin(&a);
    if (try_begin(&b, &options, NULL))
        bail("no capture of another rate");
    hog_one(20 * MS);
    p = end(&b);
    check_equal(p->period, 5000000, "a later capture says whose rate it has");
    profile_free(p);
    profile_free(end(&a));
    if (try_begin(&b, &options, NULL))
        bail("no capture of another rate");
    p = end(&b);
    check_equal(p->period, 20000000, "alone it has its own");
    profile_free(p);
}

/* --- threads -------------------------------------------------------------- */

#define N_THREADS 4
#define N_AGAIN   3
static int stop_threads;

static void *
hog_until_stopped(void *arg)
{
    while (!__atomic_load_n(&stop_threads, __ATOMIC_RELAXED))
        hog_four(5 * MS);
    return arg;
}

/* One after the other, where the last that leaves ends the sampler. */
static void
test_again_at_once(void)
{
    pthread_t threads[N_THREADS];
    double seen = 0, used = 0;
    int i;

    for (i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, hog_until_stopped, NULL);
    for (i = 0; i < N_AGAIN; i++) {
        struct cpprof_cpu_options options = session_options(200);
        struct one c;
        struct profile *p;
        uint64_t before;

        options.symbolize = CPPROF_SYMBOLIZE_NONE;
        if (try_begin(&c, &options, NULL))
            bail("no capture");
        before = process_cpu_ns();
        usleep(600000);
        used += (double)(process_cpu_ns() - before) / 1e9;
        p = end(&c);
        seen += (double)profile_cpu_ns(p) / 1e9;
        profile_free(p);
    }
    note("%.2f s seen of %.2f s used", seen, used);
    /* A tick that is on its way at the end is not waited for. */
    check_near(seen, used, used / 10 + N_THREADS * N_AGAIN * 0.005,
               "captures at once after each other find all threads");
    __atomic_store_n(&stop_threads, 1, __ATOMIC_RELAXED);
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* --- shapes --------------------------------------------------------------- */

static void
test_labels(void)
{
    struct cpprof_labels *set = cpprof_labels_new("who", "me", NULL);
    struct one with, without;
    struct profile *p;

    begin_with(&without, CPPROF_FLAG_NO_LABELS);
    begin(&with);
    cpprof_labels_set_current(set);
    hog_one(200 * MS);
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
    p = end(&without);
    check_equal(profile_cpu_labelled(p, "who", "me"), 0,
                "who wants no labels has none");
    check_near(seconds_in(p, "hog_one"), 0.2, EDGE, "but all samples");
    profile_free(p);
    p = end(&with);
    check_near((double)profile_cpu_labelled(p, "who", "me") / 1e9, 0.2, EDGE,
               "another one at the same time has them");
    profile_free(p);
}

/* Unloaded before the end of one capture, and before the beginning of
 * another. */
static void
test_unload(void)
{
    typedef uint64_t hog_fn(uint64_t);
    struct one a, b;
    struct profile *p;
    const char *path = beside_path("libplugin_a.so");
    void *library;
    hog_fn *hog;

    begin(&a);
    library = dlopen(path, RTLD_NOW);
    hog = library ? (hog_fn *)dlsym(library, "plugin_a_hog") : NULL;
    if (!hog)
        bail("%s: no plug-in", path);
    hog(150 * MS);
    dlclose(library);
    begin(&b);
    hog_one(50 * MS);
    p = end(&a);
    check_near(seconds_in(p, "plugin_a_hog"), 0.15, EDGE,
               "a library that was unloaded keeps its name in a capture");
    profile_free(p);
    p = end(&b);
    check_equal(profile_cpu_in(p, "plugin_a_hog"), 0,
                "one that began later has nothing of it");
    profile_free(p);
}

/* --- no capture ----------------------------------------------------------- */

#define NO_CAPTURE ((struct cpprof_capture *)1)

/* A program that looks at no status stops what was never started. */
static void
test_none(void)
{
    static const char *const path = "/nonexistent/x.pb.gz";
    struct cpprof_writer writer;
    struct cpprof_capture *c[] = {NO_CAPTURE, NO_CAPTURE, NO_CAPTURE,
                                  NO_CAPTURE};

    cpprof_writer_to_path(path, &writer, NULL);
    check(cpprof_capture_start_cpu(&writer, NULL, &c[0], NULL) &&
              cpprof_capture_start_wall(&writer, NULL, &c[1], NULL) &&
              cpprof_capture_start_cpu_to_path(path, NULL, &c[2], NULL) &&
              cpprof_capture_start_wall_to_path(path, NULL, &c[3], NULL),
          "a file that cannot be written is an error");
    for (int i = 0; i < 4; i++) {
        check(!c[i], "no capture is NULL");
        check_equal(cpprof_capture_stop(c[i], NULL), CPPROF_OK,
                    "which may be stopped");
    }
}

/* --- limits, fork --------------------------------------------------------- */

static void
test_many(void)
{
    static struct one all[N_MAX + 1];
    struct cpprof_cpu_options options = session_options(200);
    struct cpprof_error error = {0};
    int64_t least = INT64_MAX;
    int i, n = 0;

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    while (n < N_MAX && !try_begin(&all[n], &options, &error))
        n++;
    check_equal(n, N_MAX, "128 captures run at once");
    check_equal(try_begin(&all[n], &options, &error), CPPROF_BUSY,
                "one more is refused");
    check_has(error.text, "128 captures", "which says how many there are");
    check_equal(all[n].file.n_closed * 2 + all[n].file.failed, 3,
                "and its writer is closed");
    hog_one(200 * MS);
    for (i = 0; i < n; i++) {
        struct profile *p = end(&all[i]);
        int64_t ns = profile_cpu_in(p, "hog_one");

        ns = profile_cpu_ns(p) > ns ? profile_cpu_ns(p) : ns;
        least = ns < least ? ns : least;
        profile_free(p);
    }
    check_at_least((double)least / 1e9, 0.2 - EDGE, "each has what it saw");
    begin(&all[0]);
    profile_free(end(&all[0]));
    check(true, "and then there is room again");
}

static int
in_child(struct one *parents)
{
    struct cpprof_error error = {0};
    struct one own;
    struct profile *p;

    if (cpprof_capture_stop(parents->capture, &error) != CPPROF_INVALID)
        return 1;
    if (parents->file.n || parents->file.n_closed)
        return 2;
    begin(&own);
    hog_two(100 * MS);
    p = end(&own);
    return seconds_in(p, "hog_two") < 0.05 ? 3
           : profile_cpu_in(p, "hog_one")  ? 4
                                           : 0;
}

static void
test_fork(void)
{
    struct one c;
    struct profile *p;
    int status = -1;
    pid_t child;

    begin(&c);
    hog_one(100 * MS);
    child = fork();
    if (child == 0)
        _exit(in_child(&c));
    waitpid(child, &status, 0);
    check_equal(status, 0,
                "a child may end its parent's capture and begin its own");
    hog_one(100 * MS);
    p = end(&c);
    check_near(seconds_in(p, "hog_one"), 0.2, EDGE,
               "the parent's goes on as if nothing was");
    check_equal(profile_cpu_in(p, "hog_two"), 0, "without the child's time");
    profile_free(p);
}

/* A program that ends, or becomes another one, with captures. */
static void
test_end(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct one a, b;

        begin(&a);
        session_start(0);
        begin(&b);
        hog_one(20 * MS);
        exit(0);
    }
    waitpid(child, &status, 0);
    check_equal(status, 0, "a program may end with captures");
    child = fork();
    if (child == 0) {
        struct one a;

        begin(&a);
        execl("/nonexistent", "nonexistent", (char *)NULL);
        hog_one(20 * MS);
        profile_free(end(&a));
        begin(&a);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    check_equal(status, 0, "it may exec with captures");
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_overlap();
    test_adjacent();
    test_ordinary_in_capture();
    test_capture_in_ordinary();
    test_rate();
    test_again_at_once();
    test_labels();
    test_none();
    test_unload();
    test_many();
    test_fork();
    test_end();
    return check_done();
}
