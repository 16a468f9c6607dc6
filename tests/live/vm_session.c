/* SPDX-License-Identifier: MIT */
/*
 * Profiles of interpreted code start and stop in the midst of anything, follow
 * coroutines, and hold up nobody.
 */
#include "load.h"
#include "vm_toy.h"

#include <cpprof/labels.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void
nap(int n, void *arg)
{
    usleep((useconds_t)n * 1000);
}
static const struct toy_function sleeper = {"sleep", NULL, 0, NULL, nap};
static const struct toy_code nap_code[] = {{TOY_CALL, 1, 300, &sleeper},
                                           {TOY_RETURN, 2, 0, NULL}};
static const struct toy_function napper = {"napper", "nap.toy", 1, nap_code,
                                           NULL};

static const char *const mode_names[] = {"tick", "span", "cpu"};

static const char *
named(enum cpprof_vm_mode mode, const char *what)
{
    static char name[128];

    snprintf(name, sizeof name, "%s_%s", mode_names[mode], what);
    return name;
}

static double
seconds_since(uint64_t begin)
{
    return (double)(toy_clock(CLOCK_MONOTONIC) - begin) / 1e9;
}

/* ---- calls that are refused -------------------------------------------- */

static void
refused_starts(void)
{
    static const struct cpprof_vm_options fast = {.size = sizeof fast,
                                                  .rate_hz = 10001};
    static const struct cpprof_vm_options deep = {.size = sizeof deep,
                                                  .max_depth = 1025};
    static const struct cpprof_vm_options flags = {.size = sizeof flags,
                                                   .flags = 2};
    static const struct cpprof_vm_options mode = {
        .size = sizeof mode, .mode = (enum cpprof_vm_mode)3};
    static const struct cpprof_vm_options *const wrong[] = {&fast, &deep,
                                                            &flags, &mode};
    struct cpprof_error error;
    struct memory m;
    size_t i, n_refused = 0, n_closed = 0;

    check_equal(cpprof_vm_stop(&error), CPPROF_OK,
                "stop_without_start_is_harmless");
    for (i = 0; i < 4; i++) {
        n_refused +=
            cpprof_vm_start((struct cpprof_writer[]){memory_writer(&m)},
                            wrong[i], &error) == CPPROF_INVALID;
        n_closed += m.n_closed == 1 && m.failed;
    }
    check_equal((int64_t)n_refused, 4, "options_out_of_range_are_refused");
    check_equal((int64_t)n_closed, 4, "writer_of_a_refused_start_is_closed");
    toy_start(CPPROF_VM_MODE_SPAN, 0);
    check_equal(cpprof_vm_start((struct cpprof_writer[]){memory_writer(&m)},
                                NULL, &error),
                CPPROF_BUSY, "second_start_is_refused");
    check_text(error.text, "profiler already running",
               "second_start_says_why_as_starlark");
    check(m.n_closed == 1 && m.failed, "writer_of_a_second_start_is_closed");
    profile_free(toy_stop());
}

static int
refuse_write(void *ctx, const void *data, size_t n)
{
    return ENOSPC;
}

static void
failing_writer(void)
{
    struct cpprof_error error;
    struct toy toy;

    toy_make(&toy);
    cpprof_vm_start(&(struct cpprof_writer){sizeof(struct cpprof_writer),
                                            refuse_write, NULL, NULL},
                    NULL, &error);
    toy_run(&toy, &napper);
    check_equal(cpprof_vm_stop(&error), CPPROF_SYSTEM,
                "stop_returns_the_error_of_the_writer");
    check_equal(error.sys, ENOSPC, "stop_says_which_error_it_was");
    cpprof_vm_thread_free(toy.t);
}

/* ---- in the midst ------------------------------------------------------ */

static void *
run_napper(void *arg)
{
    toy_run(arg, &napper);
    return NULL;
}

/* The whole profile lies in one sleep of another thread: time without an
 * answer, and how long the profile is. */
static int64_t
count_within_one_span(enum cpprof_vm_mode mode, int64_t *duration_ns)
{
    struct profile *p;
    pthread_t thread;
    struct toy toy;
    int64_t counted;

    toy_make(&toy);
    pthread_create(&thread, NULL, run_napper, &toy);
    usleep(50000);
    toy_start(mode, 0);
    usleep(100000);
    p = toy_stop();
    counted = profile_cpu_leaf(p, "[no answer]");
    *duration_ns = p->duration_ns;
    profile_free(p);
    pthread_join(thread, NULL);
    cpprof_vm_thread_free(toy.t);
    return counted;
}

/* Again where a busy machine let the sleep end first. */
static void
within_one_span(enum cpprof_vm_mode mode)
{
    int64_t counted, duration_ns;
    int i;

    for (i = 0; i < 5; i++) {
        counted = count_within_one_span(mode, &duration_ns);
        if (llabs(counted - duration_ns) <= 11000000)
            break;
    }
    check_near((double)counted, (double)duration_ns, 1.1e7,
               named(mode, "says_that_a_thread_gave_no_answer"));
}

/* It starts in a sleep and stops after it: seconds that were counted, and those
 * until the thread was seen to have ended. */
static double
count_rest_of_a_span(enum cpprof_vm_mode mode, double *seconds)
{
    struct profile *p;
    pthread_t thread;
    struct toy toy;
    uint64_t begin;
    double counted;

    toy_make(&toy);
    pthread_create(&thread, NULL, run_napper, &toy);
    usleep(50000);
    toy_start(mode, 0);
    begin = toy_clock(CLOCK_MONOTONIC);
    pthread_join(thread, NULL);
    *seconds = seconds_since(begin);
    p = toy_stop();
    counted = (double)profile_cpu_leaf(p, "sleep") / 1e9;
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
    return counted;
}

/* Again where a busy machine was late to see the end. */
static void
from_the_midst_of_a_span(enum cpprof_vm_mode mode)
{
    double seconds, counted;
    int i;

    for (i = 0; i < 5; i++) {
        counted = count_rest_of_a_span(mode, &seconds);
        if (fabs(counted - seconds) <= 0.03)
            break;
    }
    check_near(counted, seconds, 0.03,
               named(mode, "counts_a_span_since_the_start_of_the_profile"));
}

static void
stop_itself(int n, void *arg)
{
    usleep((useconds_t)n * 1000);
    cpprof_vm_stop(NULL);
}
static const struct toy_function stopper = {"stop", NULL, 0, NULL, stop_itself};
static const struct toy_code stop_code[] = {{TOY_CALL, 1, 100, &stopper},
                                            {TOY_RETURN, 2, 0, NULL}};
static const struct toy_function stopping = {"stopping", "stop.toy", 1,
                                             stop_code, NULL};

static void
stop_from_the_script(enum cpprof_vm_mode mode)
{
    struct profile *p;
    struct toy toy;

    toy_make(&toy);
    toy_start(mode, 0);
    toy_run(&toy, &stopping);
    p = toy_read();
    check_near((double)profile_cpu_leaf(p, "stop"), (double)p->duration_ns,
               1.2e7, named(mode, "charges_the_script_that_stops_it"));
    check_equal(profile_cpu_leaf(p, "[no answer]"), 0,
                named(mode, "has_an_answer_of_the_thread_that_stops"));
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

/* ---- coroutines -------------------------------------------------------- */

static struct toy other;

/* As resume: the other runs on this thread, and nothing of this one. */
static void
resume(int n, void *arg)
{
    toy_run(&other, &napper);
}
static const struct toy_function resumer = {"resume", NULL, 0, NULL, resume};
static const struct toy_code resume_code[] = {{TOY_CALL, 21, 0, &resumer},
                                              {TOY_RETURN, 22, 0, NULL}};
static const struct toy_function resuming = {"resuming", "resume.toy", 20,
                                             resume_code, NULL};

/* A tick may be late on a machine with much to do: up to three times. */
static void
coroutine(enum cpprof_vm_mode mode)
{
    struct profile *p = NULL;
    struct toy toy;
    double seconds = 0;
    uint64_t begin;
    unsigned i;

    toy_make(&toy);
    toy_make(&other);
    for (i = 0; i < 3 && (!p || profile_cpu_leaf(p, "[no answer]")); i++) {
        if (p)
            profile_free(p);
        toy_start(mode, 1000);
        begin = toy_clock(CLOCK_MONOTONIC);
        toy_run(&toy, &resuming);
        seconds = seconds_since(begin);
        p = toy_stop();
    }
    check_near((double)profile_cpu_ns(p) / 1e9, seconds, 0.01,
               named(mode, "counts_time_in_a_coroutine_once"));
    check_near((double)profile_cpu_root(p, "napper") / 1e9, seconds, 0.01,
               named(mode, "charges_the_coroutine_that_runs"));
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
    cpprof_vm_thread_free(other.t);
}

/* It lies for a while between two runs. */
static void
idle_thread(enum cpprof_vm_mode mode)
{
    struct profile *p;
    struct toy toy;
    uint64_t begin;
    double seconds;

    toy_make(&toy);
    toy_start(mode, 1000);
    begin = toy_clock(CLOCK_MONOTONIC);
    toy_run(&toy, &napper);
    seconds = seconds_since(begin);
    usleep(200000);
    begin = toy_clock(CLOCK_MONOTONIC);
    toy_run(&toy, &napper);
    seconds += seconds_since(begin);
    p = toy_stop();
    check_near((double)profile_cpu_ns(p) / 1e9, seconds, 0.01,
               named(mode, "leaves_out_what_lies_between_two_runs"));
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

static const struct toy_code brief_code[] = {{TOY_WORK, 31, 20000, NULL},
                                             {TOY_RETURN, 32, 0, NULL}};
static const struct toy_function brief = {"brief", "brief.toy", 30, brief_code,
                                          NULL};

/* None of them lives for a quantum. */
static void
brief_threads(enum cpprof_vm_mode mode)
{
    uint64_t until, begin, sum = 0;
    struct profile *p;
    struct toy toy;

    toy_start(mode, 0);
    until = toy_clock(CLOCK_MONOTONIC) + 500000000u;
    do {
        toy_make(&toy);
        begin = toy_clock(CLOCK_MONOTONIC);
        toy_run(&toy, &brief);
        sum += toy_clock(CLOCK_MONOTONIC) - begin;
        cpprof_vm_thread_free(toy.t);
    } while (toy_clock(CLOCK_MONOTONIC) < until);
    p = toy_stop();
    check_near((double)profile_cpu_ns(p) / (double)sum, 1, 0.1,
               named(mode, "has_the_time_of_threads_shorter_than_a_quantum"));
    profile_free(p);
}

/* ---- who is profiled --------------------------------------------------- */

static void
one_of_two(void)
{
    struct cpprof_vm_options options = {.size = sizeof options,
                                        .mode = CPPROF_VM_MODE_SPAN};
    struct cpprof_vm *first = toy_vm;
    struct profile *p;
    struct toy a, b;

    toy_make(&a);
    toy_vm = NULL; /* another interpreter of the same kind */
    toy_make(&b);
    options.vm = toy_vm;
    toy_start_with(&options);
    toy_run(&a, &napper);
    toy_run(&b, &napper);
    p = toy_stop();
    check_near((double)profile_cpu_ns(p) / 1e9, 0.3, 0.1,
               "interpreter_that_was_not_asked_for_is_left_out");
    profile_free(p);
    cpprof_vm_thread_free(a.t);
    cpprof_vm_thread_free(b.t);
    toy_vm = first;
}

/* ---- a slow writer ----------------------------------------------------- */

static struct {
    struct cpprof_writer writer;
    atomic_bool is_stuck;
} slow;

static int
write_slowly(void *ctx, const void *data, size_t n)
{
    while (atomic_load(&slow.is_stuck))
        usleep(1000);
    return slow.writer.write(slow.writer.ctx, data, n);
}

static int
close_slow(void *ctx, int failed)
{
    return slow.writer.close(slow.writer.ctx, failed);
}

/* Long labels that differ at every sample: much to write. */
static void
fill(struct toy *toy, uint64_t until)
{
    char value[30000];
    unsigned i = 0;

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = 0;
    while (toy_clock(CLOCK_MONOTONIC) < until) {
        struct cpprof_labels *set;

        snprintf(value, 12, "%010u", i++);
        value[10] = 'x';
        set = cpprof_labels_new("request", value, NULL);
        cpprof_labels_set_current(set);
        cpprof_vm_span_next(toy->t);
        cpprof_labels_set_current(NULL);
        cpprof_labels_free(set);
    }
}

static void
slow_writer(void)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options, .mode = CPPROF_VM_MODE_SPAN, .rate_hz = 10000};
    uint64_t begin = toy_clock(CLOCK_MONOTONIC), waited = thread_waited_ns(),
             last;
    struct cpprof_error error;
    struct profile *p;
    struct toy toy;
    size_t i;

    toy_make(&toy);
    slow.writer = memory_writer(&toy_memory);
    atomic_store(&slow.is_stuck, true);
    if (cpprof_vm_start(&(struct cpprof_writer){sizeof(struct cpprof_writer),
                                                write_slowly, close_slow, NULL},
                        &options, &error))
        bail("start: %s", error.text);
    cpprof_vm_thread_enter(toy.t);
    toy_push(&toy, &brief);
    for (i = 0; i < 30; i++) {
        last = toy_clock(CLOCK_MONOTONIC);
        fill(&toy, last + 100000000u);
    }
    toy_pop(&toy);
    cpprof_vm_thread_enter(NULL);
    last = toy_clock(CLOCK_MONOTONIC);
    waited = thread_waited_ns() - waited;
    atomic_store(&slow.is_stuck, false);
    p = toy_stop();
    /* Of two clocks: one that did not wait may have waited for -1 us. */
    check_at_most((double)(int64_t)waited / 1e9, 1.5,
                  "writer_that_is_stuck_holds_up_nobody");
    check_at_least((double)profile_cpu_leaf(p, "[lost samples]"), 1e7,
                   "time_without_room_is_a_frame");
    check_near((double)profile_cpu_ns(p) / (double)(last - begin), 1, 0.01,
               "no_time_is_lost_with_samples");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

/* ---- fork -------------------------------------------------------------- */

static int
child(struct toy *toy)
{
    struct profile *p;
    bool ok;

    if (cpprof_vm_running->spans || cpprof_vm_stop(NULL))
        return 1;
    toy_run(toy, &napper);
    toy_start(CPPROF_VM_MODE_TICK, 0);
    toy_run(toy, &napper);
    p = toy_stop();
    ok = profile_cpu_leaf(p, "sleep") > 200000000;
    profile_free(p);
    return ok ? 0 : 2;
}

static void
forked_child(void)
{
    struct profile *p;
    struct toy toy;
    int status = -1;
    pid_t pid;

    toy_make(&toy);
    toy_start(CPPROF_VM_MODE_SPAN, 0);
    toy_run(&toy, &napper);
    pid = fork();
    if (pid == 0)
        _exit(child(&toy));
    waitpid(pid, &status, 0);
    check_equal(status, 0, "forked_child_has_no_profile_and_may_start_one");
    p = toy_stop();
    check_near((double)profile_cpu_leaf(p, "sleep") / 1e9, 0.3, 0.1,
               "profile_of_the_parent_goes_on");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

int
main(void)
{
    enum cpprof_vm_mode mode;

    refused_starts();
    failing_writer();
    for (mode = CPPROF_VM_MODE_TICK; mode <= CPPROF_VM_MODE_SPAN; mode++) {
        within_one_span(mode);
        from_the_midst_of_a_span(mode);
        stop_from_the_script(mode);
        coroutine(mode);
        idle_thread(mode);
        brief_threads(mode);
    }
    one_of_two();
    slow_writer();
    forked_child();
    return check_done();
}
