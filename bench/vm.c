/* SPDX-License-Identifier: MIT */
/*
 * What an interpreter pays, in CPU time, as ratios within one run: the inline
 * calls when no profile runs beside a loop without them; a pair of spans beside
 * two readings of the clock; a program of calls and loops in each mode.
 */
#define TOY_NO_MAIN
#include "../examples/toy_vm.c"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 9
#define PAIRS  2000000

static struct toy toy;
static volatile unsigned sum;

static double
cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- what is measured -------------------------------------------------- */

static void
nothing(void)
{
    int i;

    for (i = 0; i < PAIRS; i++)
        sum = sum * 31 + 7;
}

static void
polls(void)
{
    int i;

    for (i = 0; i < PAIRS; i++) {
        sum = sum * 31 + 7;
        cpprof_vm_thread_poll(toy.t);
    }
}

static void
spans(void)
{
    int i;

    for (i = 0; i < PAIRS; i++) {
        cpprof_vm_span_begin(toy.t);
        sum = sum * 31 + 7;
        cpprof_vm_span_end(toy.t);
    }
}

static void
nexts(void)
{
    int i;

    for (i = 0; i < PAIRS; i++) {
        cpprof_vm_span_next(toy.t);
        sum = sum * 31 + 7;
        cpprof_vm_span_next(toy.t);
    }
}

static void
enters(void)
{
    int i;

    for (i = 0; i < PAIRS; i++) {
        cpprof_vm_thread_enter(NULL);
        sum = sum * 31 + 7;
        cpprof_vm_thread_enter(toy.t);
    }
}

static void
clocks(void)
{
    struct timespec t;
    int i;

    for (i = 0; i < PAIRS; i++) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        sum = sum * 31 + (unsigned)t.tv_nsec;
        clock_gettime(CLOCK_MONOTONIC, &t);
    }
}

/* Calls of 1 us. */
static const struct toy_code leaf_code[] = {{TOY_WORK, 11, 500, NULL},
                                            {TOY_RETURN, 12, 0, NULL}};
static const struct toy_function leaf = {"leaf", "bench.toy", 10, leaf_code,
                                         NULL};
static const struct toy_code script_code[] = {{TOY_CALL, 1, 0, &leaf},
                                              {TOY_REPEAT, 2, 300000, NULL},
                                              {TOY_RETURN, 3, 0, NULL}};
static const struct toy_function script_function = {NULL, "bench.toy", 1,
                                                    script_code, NULL};

static void
script(void)
{
    toy_run(&toy, &script_function);
}

/* ---- rows -------------------------------------------------------------- */

static int
swallow(void *ctx, const void *data, size_t n)
{
    return 0;
}

static void
start(int mode, uint32_t rate_hz)
{
    const struct cpprof_vm_options options = {.size = sizeof options,
                                              .mode = (enum cpprof_vm_mode)mode,
                                              .rate_hz = rate_hz};

    if (mode >= 0 &&
        cpprof_vm_start(&(struct cpprof_writer){sizeof(struct cpprof_writer),
                                                swallow, NULL, NULL},
                        &options, NULL))
        exit(1);
}

static double
once(void (*f)(void), int mode, uint32_t rate_hz)
{
    double begin;

    start(mode, rate_hz);
    begin = cpu_ns();
    f();
    begin = cpu_ns() - begin;
    cpprof_vm_stop(NULL);
    return begin;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct row {
    const char *name;
    void (*f)(void);
    int mode; /* -1: no profile */
    uint32_t rate_hz;
    double n; /* what one turn does */
};

/* The first is what the others are measured by, in the same round. */
static void
table(const struct row *rows, size_t n)
{
    double took[16][ROUNDS], ratio[16][ROUNDS];
    size_t i, round;

    for (round = 0; round < ROUNDS; round++)
        for (i = 0; i < n; i++) {
            took[i][round] =
                once(rows[i].f, rows[i].mode, rows[i].rate_hz) / rows[i].n;
            ratio[i][round] = took[i][round] / took[0][round];
        }
    for (i = 0; i < n; i++) {
        qsort(took[i], ROUNDS, sizeof(double), compare);
        qsort(ratio[i], ROUNDS, sizeof(double), compare);
        printf("  %-40s %9.2f ns %8.3f   (%.3f .. %.3f)\n", rows[i].name,
               took[i][ROUNDS / 2], ratio[i][ROUNDS / 2], ratio[i][ROUNDS / 4],
               ratio[i][ROUNDS * 3 / 4]);
    }
}

int
main(void)
{
    static const struct row off[] = {
        {"loop", nothing, -1, 0, PAIRS},
        {"poll, no profile", polls, -1, 0, PAIRS},
        {"begin and end, no profile", spans, -1, 0, PAIRS},
        {"leave and enter, no profile", enters, -1, 0, PAIRS}};
    static const struct row on[] = {
        {"two readings of the clock", clocks, -1, 0, PAIRS},
        {"begin and end, span", spans, CPPROF_VM_MODE_SPAN, 100, PAIRS},
        {"next and next, span", nexts, CPPROF_VM_MODE_SPAN, 100, PAIRS},
        {"leave and enter, tick", enters, CPPROF_VM_MODE_TICK, 100, PAIRS},
        {"poll, tick", polls, CPPROF_VM_MODE_TICK, 100, PAIRS}};
    static const struct row scripts[] = {
        {"script, a call each 500 steps", script, -1, 0, 300000},
        {"again", script, -1, 0, 300000},
        {"tick, 100 Hz", script, CPPROF_VM_MODE_TICK, 100, 300000},
        {"tick, 1000 Hz", script, CPPROF_VM_MODE_TICK, 1000, 300000},
        {"cpu, 100 Hz", script, CPPROF_VM_MODE_CPU, 100, 300000},
        {"span, 100 Hz", script, CPPROF_VM_MODE_SPAN, 100, 300000}};
    struct cpprof_vm *vm;

    if (cpprof_vm_new(&toy_ops, &vm, NULL) ||
        cpprof_vm_thread_new(vm, &toy, &toy.t, NULL))
        return 1;
    printf("  %-40s %12s %8s\n", "CPU time of one turn", "median", "ratio");
    table(off, sizeof off / sizeof *off);
    cpprof_vm_thread_enter(toy.t);
    toy.depth = 1;
    toy.frames[0] = (struct toy_frame){&leaf, 0, 0};
    table(on, sizeof on / sizeof *on);
    toy.depth = 0;
    table(scripts, sizeof scripts / sizeof *scripts);
    return 0;
}
