/* SPDX-License-Identifier: MIT */
/*
 * Native profiles of a program with an interpreter show its scripts: CPU time,
 * wall time, heap.
 */
#include "vm_toy.h"

#include "load.h"
#include "session.h"

#include <cpprof/heap.h>
#include <cpprof/wall.h>

#include <stdlib.h>
#include <unistd.h>

/* Builtins: native code that a script calls. */
__attribute__((noinline)) static void
burn_two(int n, void *arg)
{
    hog_two((uint64_t)n * MS);
    __asm__ volatile("");
}

__attribute__((noinline)) static void
burn_one(int n, void *arg)
{
    hog_one((uint64_t)n * MS);
    __asm__ volatile("");
}

static void *volatile kept[4096];
static unsigned n_kept;

__attribute__((noinline)) static void
take_memory(int n, void *arg)
{
    kept[n_kept++ % 4096] = malloc((size_t)n);
    __asm__ volatile("");
}

static const struct toy_code inner_code[];
static const struct toy_function inner = {"inner", "mix.toy", 30, inner_code,
                                          NULL};

/* Native code that calls a script: a second activation of the run loop. */
__attribute__((noinline)) static void
call_back(int n, void *arg)
{
    struct toy *toy = arg;
    struct cpprof_vm_thread *t = toy->t;
    static struct toy other;

    other.t = t;
    (void)n;
    toy_run(&other, &inner);
    __asm__ volatile("");
}

static const struct toy_function two = {"two", NULL, 0, NULL, burn_two};
static const struct toy_function one = {"one", NULL, 0, NULL, burn_one};
static const struct toy_function memory = {"memory", NULL, 0, NULL,
                                           take_memory};
static const struct toy_function back = {"back", NULL, 0, NULL, call_back};

static const struct toy_code inner_code[] = {{TOY_WORK, 31, 2000, NULL},
                                             {TOY_RETURN, 32, 0, NULL}};
static const struct toy_code work_code[] = {{TOY_CALL, 21, 20, &two},
                                            {TOY_CALL, 22, 10, &one},
                                            {TOY_RETURN, 23, 0, NULL}};
static const struct toy_function work = {"work", "mix.toy", 20, work_code,
                                         NULL};
static const struct toy_code main_code[] = {{TOY_CALL, 1, 0, &work},
                                            {TOY_REPEAT, 2, 40, NULL},
                                            {TOY_RETURN, 3, 0, NULL}};
static const struct toy_function top = {NULL, "mix.toy", 1, main_code, NULL};

/* The same, but shorter. */
static const struct toy_code brief_code[] = {{TOY_CALL, 1, 0, &work},
                                             {TOY_REPEAT, 2, 15, NULL},
                                             {TOY_RETURN, 3, 0, NULL}};
static const struct toy_function brief = {NULL, "mix.toy", 1, brief_code, NULL};

static const struct toy_code memory_code[] = {{TOY_CALL, 41, 300, &memory},
                                              {TOY_CALL, 42, 100, &memory},
                                              {TOY_REPEAT, 43, 500, NULL},
                                              {TOY_RETURN, 44, 0, NULL}};
static const struct toy_function taking = {"taking", "mix.toy", 40, memory_code,
                                           NULL};

static struct toy toy;

/* ---- CPU time ---------------------------------------------------------- */

static struct profile *
cpu_of(const struct toy_function *function, unsigned length)
{
    struct cpprof_cpu_options options = session_options(500);
    struct memory file;
    struct cpprof_error error = {0};
    unsigned i;

    if (cpprof_cpu_start((struct cpprof_writer[]){memory_writer(&file)},
                         &options, &error))
        bail("start: %s", error.text);
    for (i = 0; i < length; i++)
        toy_run(&toy, function);
    if (cpprof_cpu_stop(&error))
        bail("stop: %s", error.text);
    return memory_profile(&file);
}

static bool
has_mapping(const struct profile *p, const char *name, size_t *at)
{
    for (*at = 0; *at < p->n_mappings; ++*at)
        if (!strcmp(p->mappings[*at].file, name))
            return true;
    return false;
}

/* CPU time in frames of the script at this line. */
static int64_t
time_at(const struct profile *p, const char *name, int64_t line)
{
    int64_t sum = 0;
    size_t i, k;

    for (i = 0; i < p->n_samples; i++)
        for (k = 0; k < p->samples[i].n_frames; k++) {
            const struct frame *f = &p->samples[i].frames[k];

            if (!strcmp(f->name, name) && f->line == line) {
                sum += p->samples[i].cpu_ns;
                break;
            }
        }
    return sum;
}

static void
mapping_is_truthful(const struct profile *p)
{
    size_t at;

    if (check(has_mapping(p, "[toy]", &at), "there is a mapping [toy]")) {
        check(at > 0, "which is not the first");
        check(p->mappings[at].has_functions, "it has functions");
        check(!p->mappings[at].has_line_numbers,
              "not all have lines: builtins have none");
    }
}

static void
shares(unsigned length)
{
    struct profile *p = cpu_of(&top, length);
    double all = (double)profile_cpu_ns(p);
    int64_t in_two = profile_cpu_stack(p, "hog_two;...;burn_two;two;work;"
                                          "mix.toy;...;main");
    int64_t in_one = profile_cpu_stack(p, "hog_one;...;burn_one;one;work;"
                                          "mix.toy;...;main");

    check_near((double)in_two / all, 0.667, 0.02,
               "two thirds are script, builtin, native code in one stack");
    check_near((double)in_one / all, 0.333, 0.02, "and one third");
    check_near((double)time_at(p, "work", 21) / all, 0.667, 0.02,
               "by the line that called it");
    check_near((double)time_at(p, "work", 22) / all, 0.333, 0.02,
               "and the other line");
    check_equal(profile_cpu_in(p, "toy_run"), 0, "the run loop is in no stack");
    if (profile_cpu_in(p, "toy_run") || in_two == 0)
        profile_note(p, 5);
    mapping_is_truthful(p);
    profile_free(p);
}

/* ---- callbacks --------------------------------------------------------- */

static const struct toy_code back_code[] = {{TOY_CALL, 51, 0, &back},
                                            {TOY_REPEAT, 52, 20000, NULL},
                                            {TOY_RETURN, 53, 0, NULL}};
static const struct toy_function calling = {"calling", "mix.toy", 50, back_code,
                                            NULL};

/* The toy has a stack of its own for the inner script, which its peek does not
 * join to the outer one: two activations, one entry. */
static void
callbacks(unsigned length)
{
    struct profile *p;
    double all;

    toy.arg = &toy;
    p = cpu_of(&calling, length);
    all = (double)profile_cpu_ns(p);
    check_at_least((double)profile_cpu_in(p, "calling") / all, 0.98,
                   "where entries and run loops differ the script is there");
    check_equal(profile_cpu_in(p, "toy_run"), 0,
                "and the run loop still is not");
    profile_free(p);
}

/* ---- wall time --------------------------------------------------------- */

static void
wall(unsigned length)
{
    const struct cpprof_wall_options options = {.size = sizeof options,
                                                .rate_hz = 200};
    struct cpprof_error error = {0};
    struct memory file;
    struct profile *p;
    double all;
    unsigned i;

    if (cpprof_wall_start((struct cpprof_writer[]){memory_writer(&file)},
                          &options, &error))
        bail("start: %s", error.text);
    for (i = 0; i < length; i++)
        toy_run(&toy, &brief);
    if (cpprof_wall_stop(&error))
        bail("stop: %s", error.text);
    p = memory_profile(&file);
    all = (double)profile_cpu_in(p, "main");
    check_at_least((double)profile_cpu_stack(p, "burn_two;two;work;mix.toy;"
                                                "...;main") /
                       all,
                   0.6, "wall time has the script in its stacks");
    check_equal(profile_cpu_in(p, "toy_run"), 0,
                "wall: the run loop is in no stack");
    if (profile_cpu_in(p, "toy_run"))
        profile_note_in(p, "toy_run", 5);
    profile_free(p);
}

int
main(void)
{
    toy_make(&toy);
    toy_learn(&toy, toy_vm);
    check_tries(4, shares);
    check_tries(6, callbacks);
    check_tries(4, wall);
    toy_run(&toy, &taking);
    return check_done();
}
