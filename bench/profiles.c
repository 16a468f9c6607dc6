/* SPDX-License-Identifier: MIT */
/*
 * What a program's own counting and labelling costs it: nanoseconds of CPU
 * time for each call, the best of some rounds, because what disturbs only
 * adds.
 */
#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS  15
#define TURNS   100000
#define MILLION 1000000u
#define DEPTH   18 /* and main() and what is under it */

static struct cpprof_profile *profile;
static struct cpprof_labels *sets[2];

static double
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void
check(enum cpprof_status status)
{
    if (status != CPPROF_OK) {
        fprintf(stderr, "bench: %s\n", cpprof_status_text(status));
        exit(1);
    }
}

/* ---- what is measured -------------------------------------------------- */

static void
add_and_remove(uintptr_t turn)
{
    const void *value = (const void *)(turn << 6);

    check(cpprof_profile_add(profile, value, 0, NULL));
    cpprof_profile_remove(profile, value);
}

/* Of which those that are removed were added long ago. */
static void
add_one_and_remove_another(uintptr_t turn)
{
    const void *value = (const void *)(turn << 6);
    const void *old = (const void *)((turn - MILLION) << 6);

    check(cpprof_profile_add(profile, value, 0, NULL));
    cpprof_profile_remove(profile, old);
}

static void
add_and_remove_skipping(uintptr_t turn)
{
    const void *value = (const void *)(turn << 6);

    check(cpprof_profile_add(profile, value, 2, NULL));
    cpprof_profile_remove(profile, value);
}

static void
add_and_remove_bytes(uintptr_t turn)
{
    check(cpprof_profile_add_bytes(profile, &turn, sizeof turn, 0, NULL));
    cpprof_profile_remove_bytes(profile, &turn, sizeof turn);
}

static void
switch_labels(uintptr_t turn)
{
    cpprof_labels_set_current(sets[turn & 1]);
}

static void
nothing(void *arg)
{
    __asm__ volatile("" : : "r"(arg));
}

static void
do_under_labels(uintptr_t turn)
{
    cpprof_labels_do(sets[turn & 1], nothing, NULL);
}

static void
make_labels(uintptr_t turn)
{
    CPPROF_LABELS_SCOPE("route", "/cart", "method", "GET");
    __asm__ volatile("" : : "r"(turn));
}

static void
only_the_call(uintptr_t turn)
{
    __asm__ volatile("" : : "r"(turn));
}

/* ------------------------------------------------------------------------- */

typedef void
what_fn(uintptr_t turn);

__attribute__((noinline)) static double
measure(what_fn *what, unsigned depth, uintptr_t first)
{
    double start, ns;
    uintptr_t i;

    if (depth) {
        ns = measure(what, depth - 1, first);
        __asm__ volatile("" : "+m"(ns));
        return ns;
    }
    start = now_ns();
    for (i = first; i < first + TURNS; i++)
        what(i);
    return (now_ns() - start) / TURNS;
}

static void
row(const char *name, what_fn *what, double goal_ns, uintptr_t first)
{
    double best = 1e9, call = 1e9;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        double ns = measure(what, DEPTH, first);
        double none = measure(only_the_call, DEPTH, first);

        if (what == add_one_and_remove_another)
            first += TURNS;
        best = ns < best ? ns : best;
        call = none < call ? none : call;
    }
    printf("  %-44s %8.1f ns", name, best - call);
    if (goal_ns > 0)
        printf("  (asked: %.0f)", goal_ns);
    putchar('\n');
}

static void
fill(void)
{
    uintptr_t i;

    for (i = 0; i < MILLION; i++)
        check(cpprof_profile_add(profile, (void *)(i << 6), 0, NULL));
}

static int
count_bytes(void *ctx, const void *data, size_t n)
{
    (void)data;
    *(size_t *)ctx += n;
    return 0;
}

static void
write_all(void)
{
    const struct cpprof_profile_options options = {
        .size = sizeof options, .symbolize = CPPROF_SYMBOLIZE_NONE};
    size_t n = 0;
    double start = now_ns();

    check(cpprof_profile_write(
        profile,
        &(struct cpprof_writer){.size = sizeof(struct cpprof_writer),
                                .write = count_bytes,
                                .ctx = &n},
        &options, NULL));
    printf("  %-44s %8.1f ms\n", "write a million values, without names",
           (now_ns() - start) / 1e6);
}

int
main(void)
{
    uintptr_t above = (uintptr_t)MILLION * 2;

    check(cpprof_profile_new("bench", &profile, NULL));
    sets[0] = cpprof_labels_new("route", "/cart", NULL);
    sets[1] = cpprof_labels_new("route", "/", "method", "GET", NULL);
    row("add and remove, 20 frames", add_and_remove, 300, above);
    row("the same, skip 2", add_and_remove_skipping, 0, above);
    row("the same, by bytes", add_and_remove_bytes, 0, above);
    fill();
    row("add and remove, a million values in", add_and_remove, 300, above);
    row("add one and remove another of them", add_one_and_remove_another, 0,
        MILLION);
    write_all();
    row("label switch", switch_labels, 5, 0);
    cpprof_labels_set_current(NULL);
    row("cpprof_labels_do(), no labels around it", do_under_labels, 0, 0);
    cpprof_labels_set_current(sets[0]);
    row("cpprof_labels_do(), merged over others", do_under_labels, 0, 0);
    cpprof_labels_set_current(NULL);
    row("scope of two new labels", make_labels, 0, 0);
    return 0;
}
