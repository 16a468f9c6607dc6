/* SPDX-License-Identifier: MIT */
/*
 * Stacks that must be seen and stacks that must not: inlined functions,
 * recursion, calls of libraries, the vdso, signal handlers, other stacks.
 */
#include "load.h"
#include "session.h"
#include "tap.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static uint64_t
until(double seconds)
{
    return thread_cpu_ns() + (uint64_t)(seconds * 1e9);
}

/* Most of the time, the stack is this one. */
static const char *wanted_stack;

static bool
stack_is_seen(const struct profile *p)
{
    return profile_cpu_stack(p, wanted_stack) >= 10 * p->period &&
           profile_cpu_stack(p, wanted_stack) > profile_cpu_ns(p) / 2;
}

static struct profile *
expect_stack(const char *stack, void (*work)(double), const char *name)
{
    struct profile *p;

    wanted_stack = stack;
    p = session_until(250, 0.1, 3.2, work, stack_is_seen);
    if (!check(stack_is_seen(p), name)) {
        note("want %s", stack);
        profile_note(p, 8);
    }
    return p;
}

/* --- inlined functions -----------------------------------------------------
 */

static const int inlined_line = __LINE__ + 3;

static inline __attribute__((always_inline)) uint64_t
inlined_step(uint64_t x)
{
    unsigned i;

    for (i = 0; i < 40000; i++)
        x = x * 6364136223846793005 + (x >> 33);
    return x;
}

static NOINLINE void
inlining_work(double seconds)
{
    uint64_t end = until(seconds);

    while (thread_cpu_ns() < end)
        load_sink = inlined_step(load_sink);
}

/* Frames i and i + 1 are an inlined call and its caller in one Location. */
static bool
is_inlined_pair(const struct sample *s, size_t i)
{
    return frame_is(&s->frames[i], "inlined_step") &&
           frame_is(&s->frames[i + 1], "inlining_work") &&
           s->frames[i].location == s->frames[i + 1].location;
}

static void
test_inlining(void)
{
    struct profile *p =
        expect_stack("inlined_step;inlining_work;...;main", inlining_work,
                     "an inlined function is its caller's");
    const struct frame *f = NULL;
    bool all = true;
    size_t i;

    for (i = 0; i < p->n_samples; i++) {
        if (!stack_matches(&p->samples[i], "inlined_step"))
            continue;
        all &= is_inlined_pair(&p->samples[i], 0);
        f = &p->samples[i].frames[0];
    }
    check(f && all, "both are lines of one location, callee first");
    if (f) {
        check_has(f->file, "cpu_stacks.c", "the file is known");
        check_near((double)f->start_line, inlined_line, 1,
                   "and where the function starts");
        check_near((double)f->line, inlined_line + 5, 3, "and the line");
        check(p->mappings[f->mapping].has_inline_frames,
              "the mapping says that inlined frames are known");
    }
    profile_free(p);
}

/* --- recursion -------------------------------------------------------------
 */

#define RECURSION 20

static NOINLINE void
recurse(int depth, double seconds)
{
    if (depth > 1)
        recurse(depth - 1, seconds);
    else
        hog_one((uint64_t)(seconds * 1e9));
    load_sink++;
}

static void
recursion_work(double seconds)
{
    recurse(RECURSION, seconds);
    load_sink++;
}

static size_t
count_frames(const struct sample *s, const char *name)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < s->n_frames; i++)
        n += frame_is(&s->frames[i], name);
    return n;
}

static void
test_recursion(void)
{
    struct profile *p =
        expect_stack("recurse;recurse;...;recurse;recursion_work;...;main",
                     recursion_work, "a recursion is seen to its end");
    bool all = true;
    size_t i;

    for (i = 0; i < p->n_samples; i++)
        if (stack_matches(&p->samples[i], "hog_one;recurse"))
            all &= count_frames(&p->samples[i], "recurse") == RECURSION;
    check(all, "every one of its frames is there, none folded");
    profile_free(p);
}

static void
deep_work(double seconds)
{
    recurse(10000, seconds);
    load_sink++;
}

static size_t
n_locations(const struct sample *s)
{
    size_t n = 1;
    size_t i;

    /* The lines of one location are neighbours; the recursion's frames share
     * a location, so this counts them by name instead. */
    for (i = 1; i < s->n_frames; i++)
        n += s->frames[i].location != s->frames[i - 1].location ||
             frame_is(&s->frames[i], "recurse");
    return n;
}

static void
test_depth(uint32_t max_depth, size_t want)
{
    struct cpprof_cpu_options options = session_options(250);
    struct profile *p;
    const struct sample *s;
    char name[96];
    size_t i;
    int64_t right = 0;

    options.max_depth = max_depth;
    session_start_with(&options);
    deep_work(0.2);
    p = session_stop();
    for (i = 0; i < p->n_samples; i++) {
        s = &p->samples[i];
        if (frame_is(&s->frames[s->n_frames - 1], "[truncated]") &&
            n_locations(s) == want + 1)
            right += s->cpu_ns;
    }
    snprintf(name, sizeof name,
             "of 10000 frames %zu are kept, and [truncated] at the root", want);
    if (!check_at_least((double)right, 0.9 * (double)profile_cpu_ns(p), name))
        for (i = 0; i < p->n_samples && i < 4; i++)
            note("%zu frames, root %s", n_locations(&p->samples[i]),
                 p->samples[i].frames[p->samples[i].n_frames - 1].name);
    profile_free(p);
}

/* --- libraries -------------------------------------------------------------
 */

static NOINLINE int
compare_numbers(const void *a, const void *b)
{
    uint64_t x = churn(*(const uint64_t *)a), y = churn(*(const uint64_t *)b);

    load_sink++;
    return (x > y) - (x < y);
}

static NOINLINE void
sort_work(double seconds)
{
    uint64_t end = until(seconds);
    uint64_t numbers[256];
    size_t i;

    while (thread_cpu_ns() < end) {
        for (i = 0; i < 256; i++)
            numbers[i] = churn(i);
        qsort(numbers, 256, sizeof numbers[0], compare_numbers);
    }
    load_sink++;
}

static NOINLINE void
math_work(double seconds)
{
    uint64_t end = until(seconds);
    volatile double x = 1.5;
    int i;

    while (thread_cpu_ns() < end)
        for (i = 0; i < 5000; i++)
            x = 1.5 + fabs(sin(pow(x, 1.7)));
    load_sink++;
}

static NOINLINE void
memory_work(double seconds)
{
    static char from[1 << 16], to[1 << 16];
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    void *(*volatile set)(void *, int, size_t) = memset;
    uint64_t end = until(seconds);

    while (thread_cpu_ns() < end) {
        int i;

        for (i = 0; i < 50; i++) {
            set(from, i, sizeof from);
            copy(to, from, sizeof to);
        }
    }
    load_sink++;
}

/* CPU time of samples whose leaf is in a mapping like file and whose stack goes
 * by the function. */
static int64_t
cpu_by_library(const struct profile *p, const char *file, const char *function)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < p->n_samples; i++) {
        const struct frame *f = &p->samples[i].frames[0];

        if (f->mapping != NO_MAPPING &&
            strstr(p->mappings[f->mapping].file, file) &&
            stack_matches(&p->samples[i], function))
            sum += p->samples[i].cpu_ns;
    }
    return sum;
}

static void
test_libraries(void)
{
    struct profile *p;

    p = expect_stack("compare_numbers;...;sort_work;...;main", sort_work,
                     "a callback out of libc's qsort goes on to main");
    profile_free(p);
    p = expect_stack("math_work;...;main", math_work, "libm is called by main");
    check(cpu_by_library(p, "/libm.so", "math_work") +
                  cpu_by_library(p, "/libm-2.", "math_work") >
              profile_cpu_ns(p) / 3,
          "with leaves in libm");
    profile_free(p);
    p = expect_stack("memory_work;...;main", memory_work,
                     "hand-written assembly of libc is called by main");
    check(cpu_by_library(p, "/libc.so", "memory_work") +
                  cpu_by_library(p, "/libc-2.", "memory_work") >
              profile_cpu_ns(p) / 3,
          "with leaves in libc");
    profile_free(p);
}

/* --- vdso ------------------------------------------------------------------
 */

static NOINLINE void
vdso_work(double seconds)
{
    uint64_t end = until(seconds);
    struct timespec t;
    int i;

    while (thread_cpu_ns() < end)
        for (i = 0; i < 1000; i++)
            clock_gettime(CLOCK_MONOTONIC, &t);
    load_sink++;
}

static void
test_vdso(void)
{
    struct profile *p = expect_stack("vdso_work;...;main", vdso_work,
                                     "the vdso's callers are seen");
    int64_t in_vdso = cpu_by_library(p, "[vdso]", "vdso_work");
    size_t most = 0;
    size_t i, j;

    for (i = 0; i < p->n_samples; i++) {
        size_t n = 0;

        for (j = 0; j < p->samples[i].n_frames; j++) {
            const struct frame *f = &p->samples[i].frames[j];

            /* Inlined lines of one location count once. */
            n += f->mapping != NO_MAPPING &&
                 strcmp(p->mappings[f->mapping].file, "[vdso]") == 0 &&
                 (j == 0 || f->location != f[-1].location);
        }
        most = n > most ? n : most;
    }
    if (in_vdso == 0)
        check_skip("vdso frames are not recursive",
                   "this clock does not use the vdso");
    else
        check_at_most((double)most, 2, "vdso frames are not recursive");
    profile_free(p);
}

/* --- handlers of the program -----------------------------------------------
 */

static double handler_seconds;

static NOINLINE void
on_user_signal(int signo)
{
    hog_two((uint64_t)(handler_seconds * 1e9));
    load_sink++;
}

static NOINLINE void
raise_work(double seconds)
{
    handler_seconds = seconds;
    raise(SIGUSR1);
    load_sink++;
}

static void
handle(int signo, int flags)
{
    struct sigaction action = {.sa_handler = on_user_signal, .sa_flags = flags};

    if (sigaction(signo, &action, NULL))
        bail("sigaction failed");
}

static void
test_signal_frames(void)
{
    static const char stack[] =
        "hog_two;on_user_signal;...;raise_work;...;main";
    static char alternate[1 << 16];
    stack_t other = {.ss_sp = alternate, .ss_size = sizeof alternate};

    handle(SIGUSR1, SA_RESTART);
    profile_free(expect_stack(stack, raise_work,
                              "a handler's stack goes on below the signal"));
    sigaltstack(&other, NULL);
    handle(SIGUSR1, SA_RESTART | SA_ONSTACK);
    profile_free(
        expect_stack(stack, raise_work, "from the alternate stack as well"));
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, NULL);
}

/* --- coroutines ------------------------------------------------------------
 */

static ucontext_t main_context, coroutine_context[2];
static uint64_t coroutine_end;

static NOINLINE void
coroutine(int self)
{
    while (thread_cpu_ns() < coroutine_end) {
        if (self)
            hog_three(2 * MS);
        else
            hog_four(2 * MS);
        swapcontext(&coroutine_context[self], &coroutine_context[!self]);
    }
    swapcontext(&coroutine_context[self], &main_context);
}

static void
coroutine_work(double seconds)
{
    static char stacks[2][1 << 16];
    int i;

    coroutine_end = until(seconds);
    for (i = 0; i < 2; i++) {
        getcontext(&coroutine_context[i]);
        coroutine_context[i].uc_stack.ss_sp = stacks[i];
        coroutine_context[i].uc_stack.ss_size = sizeof stacks[i];
        coroutine_context[i].uc_link = &main_context;
        makecontext(&coroutine_context[i], (void (*)(void))coroutine, 1, i);
    }
    swapcontext(&main_context, &coroutine_context[0]);
}

static void
test_coroutines(void)
{
    struct profile *p = expect_stack("coroutine", coroutine_work,
                                     "stacks of swapcontext are walked");

    check(profile_cpu_stack(p, "hog_three;coroutine") > 0 &&
              profile_cpu_stack(p, "hog_four;coroutine") > 0,
          "both coroutines are seen");
    check_equal(profile_cpu_stack(p, "coroutine;...;main"), 0,
                "and none of them is main's");
    if (!check_equal(profile_cpu_in(p, "[unwind failed]"), 0,
                     "and none of them is broken"))
        profile_note(p, 6);
    profile_free(p);
}

/* --- a stack of the program's own ------------------------------------------
 */

static void *
own_stack_thread(void *seconds)
{
    hog_one((uint64_t)(*(double *)seconds * 1e9));
    load_sink++;
    return NULL;
}

static void
own_stack_work(double seconds)
{
    size_t n = 1 << 18;
    void *stack = mmap(NULL, n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack, n);
    if (pthread_create(&thread, &attr, own_stack_thread, &seconds))
        bail("pthread_create on an own stack failed");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    munmap(stack, n);
}

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_inlining();
    test_recursion();
    test_depth(0, 128);
    test_depth(1, 1);
    test_depth(1024, 1024);
    test_libraries();
    test_vdso();
    test_signal_frames();
    test_coroutines();
    profile_free(expect_stack("hog_one;own_stack_thread", own_stack_work,
                              "a thread on memory of the program is walked"));
    return check_done();
}
