/* SPDX-License-Identifier: MIT */
/*
 * Threads that switch between stacks of their own making, each with its labels,
 * while all that looks at threads does so (Go: TestGoroutineProfileCoro,
 * TestGoroutineProfileIssue74090): every thread is seen once, with the labels
 * of the one coroutine or of another and never of both, and nothing crashes on
 * a stack that is being left.
 */
#include "tap.h"
#include "writers.h"

#include <cpprof/labels.h>
#include <cpprof/profiles.h>
#include <cpprof/wall.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS     3
#define COROUTINES  8
#define DUMPS       30
#define STACK_BYTES (64 * 1024)

struct coroutine {
    ucontext_t context;
    struct cpprof_labels *labels;
    char *stack;
};

struct scheduler {
    ucontext_t context;
    struct coroutine coroutines[COROUTINES];
    int current;
    unsigned long n_switches;
    pthread_t thread;
};

static struct scheduler schedulers[THREADS];
static bool stop;
static __thread struct scheduler *self;

__attribute__((noinline)) static void
yield(void)
{
    struct scheduler *s = self;

    swapcontext(&s->coroutines[s->current].context, &s->context);
}

__attribute__((noinline)) static void
work(int depth)
{
    volatile unsigned spin;

    for (spin = 0; spin < 300; spin++)
        ;
    if (depth > 0)
        work(depth - 1);
    else
        yield();
    spin = 0;
}

static void
run_coroutine(void)
{
    for (;;)
        work(self->current);
}

static void *
schedule(void *arg)
{
    struct scheduler *s = self = arg;

    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct coroutine *c = &s->coroutines[s->current];

        cpprof_labels_set_current(c->labels);
        swapcontext(&s->context, &c->context);
        cpprof_labels_set_current(NULL);
        s->current = (s->current + 1) % COROUTINES;
        s->n_switches++;
    }
    return NULL;
}

static void
prepare_one(struct coroutine *c, int number)
{
    char text[8];

    snprintf(text, sizeof text, "%d", number);
    c->labels = cpprof_labels_new("co", text, "same", text, NULL);
    c->stack = malloc(STACK_BYTES);
    if (!c->labels || !c->stack || getcontext(&c->context))
        bail("out of memory");
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&c->context, run_coroutine, 0);
}

static void
prepare(struct scheduler *s)
{
    int i;

    for (i = 0; i < COROUTINES; i++)
        prepare_one(&s->coroutines[i], i);
}

static char *
dump(int debug)
{
    const struct cpprof_profile_options options = {.size = sizeof options,
                                                   .debug = debug,
                                                   .symbolize =
                                                       CPPROF_SYMBOLIZE_NONE};
    struct cpprof_error error = {0};
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);

    if (!file ||
        cpprof_profile_write(cpprof_profile_lookup("goroutine"),
                             (struct cpprof_writer[]){stream_writer(file)},
                             &options, &error) != CPPROF_OK)
        bail("%s", error.text);
    fclose(file);
    return text;
}

/* Label sets in a text; those that are no coroutine's add to *wrong. */
static unsigned
labels_in(const char *text, unsigned *wrong)
{
    unsigned n = 0;
    int a, b;

    for (; (text = strstr(text, "{\"co\":")); text++) {
        n++;
        *wrong +=
            sscanf(text, "{\"co\":\"%d\", \"same\":\"%d\"}", &a, &b) != 2 ||
            a != b || a < 0 || a >= COROUTINES;
    }
    return n;
}

static int
discard(void *ctx, const void *data, size_t n)
{
    (void)data;
    *(size_t *)ctx += n;
    return 0;
}

int
main(void)
{
    unsigned n_labels = 0, n_wrong = 0, n_missing = 0;
    size_t i, n_bytes = 0, n_threads;
    struct cpprof_writer writer = {sizeof writer, discard, NULL, &n_bytes};

    for (i = 0; i < THREADS; i++) {
        prepare(&schedulers[i]);
        if (pthread_create(&schedulers[i].thread, NULL, schedule,
                           &schedulers[i]))
            bail("pthread_create");
    }
    if (cpprof_wall_start(&writer, NULL, NULL) != CPPROF_OK)
        bail("no wall profile");
    for (i = 0; i < DUMPS; i++) {
        char *text = dump((int)(i % 3));

        if (i % 3)
            n_labels += labels_in(text, &n_wrong);
        if (i % 3 == 1)
            n_missing +=
                sscanf(text, "goroutine profile: total %zu", &n_threads) != 1 ||
                n_threads != THREADS + 1;
        free(text);
    }
    check(cpprof_wall_stop(NULL) == CPPROF_OK && n_bytes,
          "a wall profile beside it is written");
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (i = 0; i < THREADS; i++)
        pthread_join(schedulers[i].thread, NULL);
    check_equal(n_missing, 0, "every thread is in every dump, once");
    check_equal(n_wrong, 0, "labels are those of one coroutine");
    check_at_least(n_labels, DUMPS / 3, "and are there");
    for (i = 0; i < THREADS; i++)
        check_at_least((double)schedulers[i].n_switches, 1000,
                       "coroutines went on");
    return check_done();
}
