/* SPDX-License-Identifier: MIT */
/*
 * Profiles of interpreted code say the truth: shares, sums, lines, in each
 * mode.
 *
 * Source: TestProfile of go.starlark.net/starlark/profile_test.go.
 */
#include "vm_toy.h"

#include <cpprof/labels.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const struct toy_code seven_code[] = {{TOY_WORK, 11, 140000, NULL},
                                             {TOY_RETURN, 12, 0, NULL}};
static const struct toy_code two_code[] = {{TOY_WORK, 21, 40000, NULL},
                                           {TOY_RETURN, 22, 0, NULL}};
static const struct toy_code one_code[] = {{TOY_WORK, 31, 20000, NULL},
                                           {TOY_RETURN, 32, 0, NULL}};
static const struct toy_function seven = {"seven", "split.toy", 10, seven_code,
                                          NULL};
static const struct toy_function two = {"two", "split.toy", 20, two_code, NULL};
static const struct toy_function one = {"one", "split.toy", 30, one_code, NULL};

static void
nap(int n, void *arg)
{
    usleep((useconds_t)n * 1000);
}
static const struct toy_function sleeper = {"sleep", NULL, 0, NULL, nap};

static const struct toy_code naps_code[] = {{TOY_CALL, 41, 250, &sleeper},
                                            {TOY_WORK, 42, 1000, NULL},
                                            {TOY_REPEAT, 43, 2, NULL},
                                            {TOY_RETURN, 44, 0, NULL}};
static const struct toy_function naps = {"naps", "naps.toy", 40, naps_code,
                                         NULL};

/* Some 2 ms of work, and a sleep of 6. */
static const struct toy_code turns_code[] = {{TOY_WORK, 61, 2400000, NULL},
                                             {TOY_CALL, 62, 6, &sleeper},
                                             {TOY_REPEAT, 63, 150, NULL},
                                             {TOY_RETURN, 64, 0, NULL}};
static const struct toy_function turns = {"turns", "turns.toy", 60, turns_code,
                                          NULL};

/* ---- running it -------------------------------------------------------- */

/* The three have 70/20/10 of the work, and of the CPU time; what they have of
 * the wall time on a machine that does other things as well is measured. */
static struct {
    clockid_t clock;
    uint64_t until_ns;
    uint64_t last_ns;
    uint64_t took_ns[3];
} truth;

static void
look(int n, void *arg)
{
    struct toy *toy = arg;
    uint64_t now = toy_clock(CLOCK_MONOTONIC);

    if (n > 0)
        truth.took_ns[n - 1] += now - truth.last_ns;
    truth.last_ns = now;
    toy->stop = now > truth.until_ns;
}
static const struct toy_function looker = {"look", NULL, 0, NULL, look};
static const struct toy_code timed_code[] = {
    {TOY_CALL, 1, 0, &looker}, {TOY_CALL, 2, 0, &seven},
    {TOY_CALL, 3, 1, &looker}, {TOY_CALL, 4, 0, &two},
    {TOY_CALL, 5, 2, &looker}, {TOY_CALL, 6, 0, &one},
    {TOY_CALL, 7, 3, &looker}, {TOY_REPEAT, 8, 1 << 30, NULL},
    {TOY_RETURN, 9, 0, NULL}};
static const struct toy_function timed = {NULL, "split.toy", 1, timed_code,
                                          NULL};

static void
begin_run(struct toy *toy, double seconds)
{
    memset(truth.took_ns, 0, sizeof truth.took_ns);
    truth.until_ns = toy_clock(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
    toy->arg = toy;
    toy->stop = false;
}

static void
run_for(struct toy *toy, double seconds)
{
    begin_run(toy, seconds);
    toy_run(toy, &timed);
}

static const char *const mode_names[] = {"tick", "span", "cpu"};

static const char *
named(enum cpprof_vm_mode mode, const char *what)
{
    static char name[128];

    snprintf(name, sizeof name, "%s_%s", mode_names[mode], what);
    return name;
}

static double
share(const struct profile *p, const char *function)
{
    return (double)profile_cpu_leaf(p, function) / (double)profile_cpu_ns(p);
}

/* ---- shares and sums --------------------------------------------------- */

static const char *const names[] = {"seven", "two", "one"};

static double
true_share(size_t i)
{
    static const double of_work[] = {0.7, 0.2, 0.1};

    if (truth.clock == CLOCK_THREAD_CPUTIME_ID)
        return of_work[i];
    return (double)truth.took_ns[i] /
           (double)(truth.took_ns[0] + truth.took_ns[1] + truth.took_ns[2]);
}

static bool
is_true(const struct profile *p)
{
    return fabs(share(p, names[0]) - true_share(0)) < 0.02 &&
           fabs(share(p, names[1]) - true_share(1)) < 0.02 &&
           fabs(share(p, names[2]) - true_share(2)) < 0.02;
}

/* A claim that chance may break is asked again of more samples. */
static struct profile *
true_profile(enum cpprof_vm_mode mode, struct toy *toy, double *seconds)
{
    struct profile *p = NULL;
    double length;
    uint64_t begin;

    /* By CPU time there are as many samples as the kernel has ticks. */
    for (length = 1;
         length < (mode == CPPROF_VM_MODE_CPU ? 40 : 10) && !(p && is_true(p));
         length *= 2) {
        if (p)
            profile_free(p);
        toy_start(mode, 1000);
        begin = toy_clock(truth.clock);
        run_for(toy, length);
        *seconds = (double)(toy_clock(truth.clock) - begin) / 1e9;
        p = toy_stop();
    }
    return p;
}

static void
shares_and_sum(enum cpprof_vm_mode mode)
{
    struct profile *p;
    double seconds;
    struct toy toy;

    truth.clock =
        mode == CPPROF_VM_MODE_CPU ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    toy_make(&toy);
    p = true_profile(mode, &toy, &seconds);
    check_near(share(p, "seven"), true_share(0), 0.02,
               named(mode, "sees_who_has_70_percent"));
    check_near(share(p, "two"), true_share(1), 0.02,
               named(mode, "sees_who_has_20_percent"));
    check_near(share(p, "one"), true_share(2), 0.02,
               named(mode, "sees_who_has_10_percent"));
    check_near((double)profile_cpu_ns(p) / 1e9, seconds, 0.0015,
               named(mode, "sums_to_the_time_within_a_quantum"));
    /* The kernel's ticks may be some quanta apart. */
    check_equal(profile_cpu_root(p, "split.toy"),
                profile_cpu_ns(p) - profile_cpu_leaf(p, "[no answer]"),
                named(mode, "names_toplevel_as_its_file"));
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

static void
head(enum cpprof_vm_mode mode)
{
    const char *type = mode == CPPROF_VM_MODE_CPU ? "cpu" : "wall";
    uint64_t before, begun, end, after;
    struct profile *p;
    struct toy toy;

    toy_make(&toy);
    before = toy_clock(CLOCK_MONOTONIC);
    toy_start(mode, 0);
    begun = toy_clock(CLOCK_MONOTONIC);
    run_for(&toy, 0.1);
    end = toy_clock(CLOCK_MONOTONIC);
    p = toy_stop();
    after = toy_clock(CLOCK_MONOTONIC);
    check_equal((int64_t)p->n_types, 1, named(mode, "has_one_value"));
    check_text(p->types[0].type, type, named(mode, "names_its_type"));
    check_text(p->types[0].unit, "nanoseconds", named(mode, "names_its_unit"));
    check_text(p->period_type.type, type, named(mode, "names_its_period"));
    check_equal(p->period, 10000000, named(mode, "has_10_ms_by_default"));
    check_at_most((double)(end - begun), (double)p->duration_ns,
                  named(mode, "lasts_from_its_start"));
    check_at_most((double)p->duration_ns, (double)(after - before),
                  named(mode, "lasts_until_its_stop"));
    check(llabs(p->time_ns - (int64_t)toy_clock(CLOCK_REALTIME)) < 5000000000,
          named(mode, "says_when_it_was"));
    check_equal((int64_t)p->n_mappings, 1, named(mode, "has_one_mapping"));
    check_text(p->n_mappings ? p->mappings[0].file : NULL, "[toy]",
               named(mode, "names_the_mapping"));
    check(p->n_mappings && p->mappings[0].has_functions,
          named(mode, "has_functions"));
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

/* ---- builtins ---------------------------------------------------------- */

static int64_t
ns_at_line(const struct profile *p, const char *function, int64_t line)
{
    int64_t sum = 0;
    size_t i, j;

    for (i = 0; i < p->n_samples; i++)
        for (j = 0; j < p->samples[i].n_frames; j++)
            if (frame_is(&p->samples[i].frames[j], function) &&
                p->samples[i].frames[j].line == line) {
                sum += p->samples[i].cpu_ns;
                break;
            }
    return sum;
}

static void
sleeping_builtin(enum cpprof_vm_mode mode)
{
    struct profile *p;
    struct toy toy;
    uint64_t begin;
    double seconds;

    toy_make(&toy);
    toy_start(mode, 100);
    begin = toy_clock(CLOCK_MONOTONIC);
    toy_run(&toy, &naps);
    seconds = (double)(toy_clock(CLOCK_MONOTONIC) - begin) / 1e9;
    p = toy_stop();
    if (mode == CPPROF_VM_MODE_CPU) {
        check_at_most((double)profile_cpu_ns(p) / 1e9, 0.1,
                      "cpu_leaves_out_what_slept");
    } else {
        check_near((double)profile_cpu_leaf(p, "sleep") / 1e9, seconds, 0.03,
                   named(mode, "charges_the_builtin_that_slept"));
        check_near((double)ns_at_line(p, "naps", 41) / 1e9, seconds, 0.03,
                   named(mode, "charges_the_line_that_called_it"));
    }
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

/* What a moment of CPU time finds is no sleep, however often that is where the
 * thread is. */
static void
work_between_sleeps(void)
{
    double at_work = 0, seconds = 0, sum = 0;
    struct profile *p;
    struct toy toy;
    uint64_t begin;
    int i;

    toy_make(&toy);
    for (i = 0; i < 12 && at_work < 0.95; i++) { /* a busy machine */
        toy_start(CPPROF_VM_MODE_CPU, 250);
        begin = toy_clock(CLOCK_THREAD_CPUTIME_ID);
        toy_run(&toy, &turns);
        seconds = (double)(toy_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e9;
        p = toy_stop();
        sum = (double)profile_cpu_ns(p) / 1e9;
        at_work = (double)ns_at_line(p, "turns", 61) / 1e9 / sum;
        profile_free(p);
    }
    check_at_least(at_work, 0.95, "cpu_charges_work_between_sleeps");
    check_near(sum, seconds, 0.004, "cpu_of_sleepers_sums_within_a_quantum");
    cpprof_vm_thread_free(toy.t);
}

/* As of an interpreter with one lock: nobody enters, a handler may look. */
static struct toy locked;

static void
peek_locked(void *thread, cpprof_vm_visit *visit, void *ctx)
{
    size_t i;

    for (i = locked.depth; i > 0; i--) {
        const struct toy_frame *f = &locked.frames[i - 1];
        const struct toy_function *function = f->function;
        const struct cpprof_vm_peek frame = {
            .function = {function->name, NULL, function->file, function->line},
            .line = function->code ? function->code[f->pc].line : 0,
            .flags = i == 1 ? CPPROF_VM_ENTRY : 0,
        };

        if (!visit(ctx, &frame))
            return;
    }
}

static const struct cpprof_vm_ops locked_ops = {
    .size = sizeof locked_ops,
    .name = "locked",
    .flags = CPPROF_VM_SIGNAL_SAFE,
    .stack = toy_stack,
    .describe = toy_describe,
    .peek = peek_locked,
};

static double
run_locked(void)
{
    uint64_t begin;

    cpprof_vm_thread_safepoint(locked.t);
    begin = toy_clock(CLOCK_THREAD_CPUTIME_ID);
    toy_push(&locked, &turns);
    while (locked.depth)
        toy_step(&locked, &locked.frames[locked.depth - 1]);
    return (double)(toy_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e9;
}

static void
peeked_stacks(void)
{
    struct cpprof_labels *set = cpprof_labels_new("kind", "locked", NULL);
    double at_work = 0, seconds = 0, sum = 0, labelled = 0;
    struct cpprof_vm *vm;
    struct profile *p;
    int i;

    if (cpprof_vm_new(&locked_ops, &vm, NULL) ||
        cpprof_vm_thread_new(vm, &locked, &locked.t, NULL))
        bail("no interpreter");
    cpprof_vm_thread_set_tid(locked.t, gettid());
    cpprof_labels_set_current(set);
    /* What is left at the end has none. */
    for (i = 0; i < 4 && (at_work < 0.95 || labelled < 0.9 * seconds); i++) {
        toy_start(CPPROF_VM_MODE_CPU, 250);
        seconds = run_locked();
        p = toy_stop();
        sum = (double)profile_cpu_ns(p) / 1e9;
        at_work = (double)ns_at_line(p, "turns", 61) / 1e9 / sum;
        labelled = (double)profile_cpu_labelled(p, "kind", "locked") / 1e9;
        profile_free(p);
    }
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
    cpprof_vm_thread_free(locked.t);
    check_at_least(at_work, 0.95, "cpu_peeks_at_work_between_sleeps");
    check_near(sum, seconds, 0.004, "cpu_that_is_peeked_at_sums_to_all");
    check_at_least(labelled, 0.9 * seconds, "cpu_that_is_peeked_at_has_labels");
}

/* ---- what samples look like -------------------------------------------- */

static size_t
n_stacks(const struct profile *p, const char *leaf)
{
    size_t n = 0, i;

    for (i = 0; i < p->n_samples; i++)
        n += frame_is(&p->samples[i].frames[0], leaf);
    return n;
}

static void
merged_samples(void)
{
    const struct cpprof_vm_options options = {.size = sizeof options,
                                              .mode = CPPROF_VM_MODE_SPAN,
                                              .rate_hz = 1000,
                                              .flags = CPPROF_FLAG_MERGE};
    struct profile *p;
    struct toy toy;

    toy_make(&toy);
    toy_start_with(&options);
    run_for(&toy, 0.3);
    p = toy_stop();
    check_equal((int64_t)n_stacks(p, "seven"), 1,
                "merged_profile_has_a_stack_once");
    check_near((double)profile_cpu_ns(p), (double)p->duration_ns, 3e6,
               "merged_profile_has_all_of_the_time");
    profile_free(p);
    toy_start(CPPROF_VM_MODE_SPAN, 1000);
    run_for(&toy, 0.3);
    p = toy_stop();
    check_at_least((double)n_stacks(p, "seven"), 5,
                   "stream_has_a_sample_for_each_quantum");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

static void
labelled_samples(unsigned length)
{
    struct cpprof_labels *set = cpprof_labels_new("script", "split", NULL);
    struct profile *p;
    struct toy toy;
    uint64_t begin;
    double seconds;

    toy_make(&toy);
    toy_start(CPPROF_VM_MODE_TICK, 1000);
    begin = toy_clock(CLOCK_MONOTONIC);
    cpprof_labels_set_current(set);
    run_for(&toy, 0.1 * length);
    cpprof_labels_set_current(NULL);
    cpprof_labels_free(set);
    seconds = (double)(toy_clock(CLOCK_MONOTONIC) - begin) / 1e9;
    run_for(&toy, 0.1 * length);
    p = toy_stop();
    check_near((double)profile_cpu_labelled(p, "script", "split") / 1e9,
               seconds, 0.01 * length, "labels_are_those_of_their_time");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

static const struct toy_function recursive;
static const struct toy_code recursive_code[] = {{TOY_WORK, 51, 100000, NULL},
                                                 {TOY_CALL, 52, 0, &recursive},
                                                 {TOY_RETURN, 53, 0, NULL}};
static const struct toy_function recursive = {"recursive", "deep.toy", 50,
                                              recursive_code, NULL};
/* How many samples were deeper than is kept. */
static size_t
n_of_deepest(void)
{
    const struct cpprof_vm_options options = {
        .size = sizeof options, .rate_hz = 1000, .max_depth = 3};
    struct profile *p;
    struct toy toy;
    size_t n_deepest = 0, i;

    toy_make(&toy);
    toy_start_with(&options);
    while (toy.depth < TOY_DEPTH) { /* none returns */
        toy_work(&toy, 100000);
        toy_call(&toy, &recursive_code[1]);
    }
    p = toy_stop();
    for (i = 0; i < p->n_samples; i++)
        n_deepest += p->samples[i].n_frames == 4 &&
                     frame_is(&p->samples[i].frames[3], "[truncated]");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
    return n_deepest;
}

/* It takes some milliseconds, so that a tick may not come in time. */
static void
deep_stacks(void)
{
    size_t n_deepest = 0;
    unsigned i;

    for (i = 0; i < 20 && !n_deepest; i++)
        n_deepest = n_of_deepest();
    check_at_least((double)n_deepest, 1, "deep_stack_says_that_it_goes_on");
}

/* ---- identities -------------------------------------------------------- */

/* Seconds that it took. */
static double
run_as(struct toy *toy, struct toy_function *function, const char *name,
       unsigned length)
{
    uint64_t begin = toy_clock(CLOCK_MONOTONIC);

    function->name = name;
    begin_run(toy, 0.1 * length);
    toy_run(toy, function);
    return (double)(toy_clock(CLOCK_MONOTONIC) - begin) / 1e9;
}

static void
reused_address(unsigned length)
{
    struct toy_function function = timed;
    struct profile *p;
    struct toy toy;
    double before, after;

    toy_make(&toy);
    toy_start(CPPROF_VM_MODE_TICK, 1000);
    before = run_as(&toy, &function, "before", length);
    cpprof_vm_forget_function(toy_vm, &function);
    after = run_as(&toy, &function, "after", length);
    p = toy_stop();
    check_near((double)profile_cpu_root(p, "before") / 1e9, before, 0.01,
               "function_that_is_gone_keeps_its_name");
    check_near((double)profile_cpu_root(p, "after") / 1e9, after, 0.01,
               "function_at_its_address_has_its_own");
    profile_free(p);
    cpprof_vm_thread_free(toy.t);
}

int
main(void)
{
    static const enum cpprof_vm_mode modes[] = {
        CPPROF_VM_MODE_TICK, CPPROF_VM_MODE_SPAN, CPPROF_VM_MODE_CPU};
    size_t i;

    for (i = 0; i < 3; i++) {
        shares_and_sum(modes[i]);
        head(modes[i]);
        sleeping_builtin(modes[i]);
    }
    work_between_sleeps();
    peeked_stacks();
    merged_samples();
    check_tries(4, labelled_samples);
    deep_stacks();
    check_tries(4, reused_address);
    return check_done();
}
