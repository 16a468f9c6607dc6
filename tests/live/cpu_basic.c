/* SPDX-License-Identifier: MIT */
/*
 * Start, stop and what comes out, as Go's TestCPUProfile,
 * TestCPUProfileMultithreaded and TestStopCPUProfilingWithProfilerOff have it.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __attribute__((noinline)) void
work(double seconds)
{
    hog_one((uint64_t)(seconds * 1e9));
    load_sink++;
}

/* Go's rule: a quarter of what could come, or ten samples. */
static bool
sees_hog(const struct profile *p)
{
    return profile_cpu_in(p, "hog_one") >= p->duration_ns / 4 ||
           profile_cpu_in(p, "hog_one") / p->period >= 10;
}

static void
test_hog(void)
{
    struct profile *p = session_until(0, 0.3, 5, work, sees_hog);

    check(sees_hog(p), "a busy function is in the profile");
    check(profile_cpu_stack(p, "hog_one;work;...;main") >
              profile_cpu_ns(p) * 9 / 10,
          "its stack goes by its callers to main");
    check(profile_cpu_root(p, "_start") > profile_cpu_ns(p) * 9 / 10,
          "the outermost frame of the main thread is _start");
    profile_note(p, 3);
    profile_free(p);
}

static void
test_head(void)
{
    struct profile *p;
    uint64_t began = wall_ns();
    int64_t now_ns = (int64_t)time(NULL) * (int64_t)SECOND;
    double wall;

    session_start(0);
    hog_one(150 * MS);
    wall = (double)(wall_ns() - began);
    p = session_stop();
    check_text(p->types[0].type, "samples", "first value is samples");
    check_text(p->types[0].unit, "count", "counted");
    check_text(p->types[1].type, "cpu", "second value is cpu");
    check_text(p->types[1].unit, "nanoseconds", "in nanoseconds");
    check_text(p->period_type.type, "cpu", "period is of cpu");
    check_text(p->period_type.unit, "nanoseconds", "period in nanoseconds");
    check_equal(p->period, 10000000, "period of the default rate is 10 ms");
    check_near((double)p->duration_ns, wall, wall / 5,
               "duration is the time between start and stop");
    check_near((double)p->time_ns, (double)now_ns, 3e9,
               "time is when it started");
    check_equal(profile_cpu_ns(p), profile_count(p) * p->period,
                "every sample is worth one period");
    profile_free(p);
}

static void
test_comment(void)
{
    struct profile *p;
    const char *name = engine_name;

    session_start(0);
    hog_one(50 * MS);
    p = session_stop();
    if (engine == CPPROF_ENGINE_AUTO)
        name = "timer";
    check(profile_comment(p, name), "a comment names the engine");
    check(profile_comment(p, "100"), "a comment tells the rate");
    profile_note(p, 0);
    profile_free(p);
}

/* Perf events may cut a sleep short: nobody has them who did not ask. */
static void
test_automatic_engine(void)
{
    struct profile *p;

    if (engine != CPPROF_ENGINE_AUTO)
        return;
    session_start(1000);
    hog_one(50 * MS);
    p = session_stop();
    check(profile_comment(p, "engine timer"),
          "the automatic engine is the timer at a high rate, too");
    profile_note(p, 0);
    profile_free(p);
}

static void
test_mappings(void)
{
    struct profile *p;
    char self[512] = {0};
    size_t n_vdso = 0;
    size_t n_libc = 0;
    size_t i;

    if (!realpath("/proc/self/exe", self))
        bail("/proc/self/exe cannot be read");
    session_start(0);
    hog_one(100 * MS);
    p = session_stop();
    check(p->n_mappings > 2, "the executable mappings are listed");
    check_text(p->mappings[0].file, self, "the main binary comes first");
    check(strlen(p->mappings[0].build_id) >= 16, "it has its build id");
    for (i = 0; i < p->n_mappings; i++) {
        n_vdso += strcmp(p->mappings[i].file, "[vdso]") == 0;
        n_libc += strstr(p->mappings[i].file, "/libc.so") ||
                  strstr(p->mappings[i].file, "/libc-2."); /* before 2.34 */
    }
    check_equal((int64_t)n_vdso, 1, "the vdso is listed");
    check_equal((int64_t)n_libc, 1, "libc is listed");
    check(p->mappings[0].has_functions, "functions of the binary are known");
    profile_free(p);
}

/* --- second start, stop when off, again and again --------------------------
 */

static int n_closed;
static int closed_failed;

static int
count_write(void *ctx, const void *data, size_t n_bytes)
{
    return 0;
}

static int
count_close(void *ctx, int failed)
{
    n_closed++;
    closed_failed = failed;
    return 0;
}

static void
test_second_start(void)
{
    struct cpprof_writer writer = {sizeof writer, count_write, count_close,
                                   NULL};
    struct cpprof_cpu_options options = session_options(0);
    struct cpprof_error error = {0};
    struct profile *p;

    session_start(0);
    check_equal(cpprof_cpu_start(&writer, &options, &error), CPPROF_BUSY,
                "a second start is refused as busy");
    check_text(error.text, "cpu profiling already in use", "with Go's words");
    check_equal(n_closed, 1, "the refused writer is closed once");
    check_equal(closed_failed, 1, "as failed");
    hog_one(150 * MS);
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") > 0, "the first profile goes on");
    profile_free(p);
}

static void
test_stop_when_off(void)
{
    struct cpprof_error error = {0};

    check_equal(cpprof_cpu_stop(&error), CPPROF_OK,
                "stop without start is harmless");
    check_equal(cpprof_cpu_stop(NULL), CPPROF_OK, "and again");
}

static void
test_repeated(void)
{
    int64_t least = INT64_MAX;
    int i;

    for (i = 0; i < 10; i++) {
        struct profile *p;
        int64_t seen;

        session_start(250);
        if (i % 2)
            hog_one(60 * MS);
        else
            hog_two(60 * MS);
        p = session_stop();
        seen = profile_cpu_in(p, i % 2 ? "hog_one" : "hog_two");
        if (profile_cpu_in(p, i % 2 ? "hog_two" : "hog_one"))
            seen = -1;
        least = seen < least ? seen : least;
        profile_free(p);
    }
    check_at_least((double)least, 18e6,
                   "each of ten profiles sees its own work and no other");
}

static void
test_nothing(void)
{
    struct profile *p;

    session_start(0);
    p = session_stop();
    check(p->n_samples <= 1, "a profile of nothing is valid and empty");
    check_equal(p->period, 10000000, "and has its period");
    profile_free(p);
}

/* --- options ---------------------------------------------------------------
 */

static void
expect_invalid(const struct cpprof_cpu_options *options, const char *name)
{
    struct cpprof_writer writer = {sizeof writer, count_write, count_close,
                                   NULL};
    struct cpprof_error error = {0};

    if (!check_equal(cpprof_cpu_start(&writer, options, &error), CPPROF_INVALID,
                     name))
        cpprof_cpu_stop(NULL);
    else if (!error.text[0] || strchr(error.text, '\n'))
        check(false, "the reason is one line");
}

static void
test_options(void)
{
    struct cpprof_cpu_options o = session_options(10001);

    expect_invalid(&o, "a rate above 10000 Hz is refused");
    o = session_options(0);
    o.max_depth = 1025;
    expect_invalid(&o, "a depth above 1024 is refused");
    o = session_options(0);
    o.engine = (enum cpprof_engine)99;
    expect_invalid(&o, "an unknown engine is refused");
    o = session_options(0);
    o.symbolize = (enum cpprof_symbolize)99;
    expect_invalid(&o, "an unknown kind of symbols is refused");
    o = session_options(0);
    o.flags = 1u << 31;
    expect_invalid(&o, "an unknown flag is refused");
}

/* A caller that was built against an older or a newer header. */
static void
test_option_sizes(void)
{
    struct {
        struct cpprof_cpu_options options;
        char tail[32];
    } longer = {.options = session_options(0)};
    struct cpprof_writer writer = {sizeof writer, count_write, NULL, NULL};
    struct cpprof_cpu_options shorter = session_options(0);

    shorter.size = offsetof(struct cpprof_cpu_options, max_depth);
    shorter.max_depth = 5000;
    check_equal(cpprof_cpu_start(&writer, &shorter, NULL), CPPROF_OK,
                "a shorter struct gets defaults for the rest");
    cpprof_cpu_stop(NULL);
    longer.options.size = sizeof longer;
    check_equal(cpprof_cpu_start(&writer, &longer.options, NULL), CPPROF_OK,
                "a longer struct with a zero tail is taken");
    cpprof_cpu_stop(NULL);
    longer.tail[31] = 1;
    expect_invalid(&longer.options, "a longer struct with more in it is not");
}

static void
test_symbolize(void)
{
    struct cpprof_cpu_options options = session_options(200);
    struct profile *p;

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    session_start_with(&options);
    hog_one(75 * MS);
    p = session_stop();
    check(p->n_samples > 0 && !p->samples[0].frames[0].name[0] &&
              p->samples[0].frames[0].address,
          "without symbols there are addresses");
    check(!p->mappings[0].has_functions, "and no claim of functions");
    profile_free(p);
    options.symbolize = CPPROF_SYMBOLIZE_FUNCTIONS;
    session_start_with(&options);
    hog_one(75 * MS);
    p = session_stop();
    check(profile_cpu_in(p, "hog_one") > 0, "functions only: names are there");
    check(p->n_samples > 0 && p->samples[0].frames[0].line == 0,
          "and no lines");
    check(!p->mappings[0].has_line_numbers, "and no claim of lines");
    profile_free(p);
}

/* --- two threads -----------------------------------------------------------
 */

static void *
thread_one(void *seconds)
{
    hog_one((uint64_t)(*(double *)seconds * 1e9));
    return NULL;
}

static void *
thread_two(void *seconds)
{
    hog_two((uint64_t)(*(double *)seconds * 1e9));
    return NULL;
}

static void
work_threads(double seconds)
{
    pthread_t one, two;

    pthread_create(&one, NULL, thread_one, &seconds);
    pthread_create(&two, NULL, thread_two, &seconds);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}

static bool
sees_both(const struct profile *p)
{
    return profile_cpu_in(p, "hog_one") / p->period >= 10 &&
           profile_cpu_in(p, "hog_two") / p->period >= 10;
}

static void
test_two_threads(void)
{
    struct profile *p = session_until(0, 0.3, 5, work_threads, sees_both);

    check(sees_both(p), "two busy threads are both in the profile");
    check_equal(profile_cpu_stack(p, "hog_one;...;main"), 0,
                "a thread's stack does not go on into main");
    check(profile_cpu_stack(p, "hog_one;thread_one") > 0,
          "but by its start routine");
    profile_free(p);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_stop_when_off();
    test_hog();
    test_head();
    test_comment();
    test_automatic_engine();
    test_mappings();
    test_second_start();
    test_stop_when_off();
    test_repeated();
    test_nothing();
    test_options();
    test_option_sizes();
    test_symbolize();
    test_two_threads();
    return check_done();
}
