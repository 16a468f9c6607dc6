/* SPDX-License-Identifier: MIT */
/*
 * What a walk up the stack costs: cpprof's unwinder beside the ones that a C
 * program can have otherwise, on the same stacks in the same run.
 *
 * The stack is a chain of functions with frames of different sizes and no two
 * return addresses the same; without frame pointers, except for the row that
 * follows them. Methods take turns within a round, so that a slow moment of the
 * machine meets all of them; the table shows the medians of the rounds.
 */
#include "collect/signal/unwind/unwind.h"
#include "arch/regs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>
#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#define MAX_FRAMES 256
#define ROUNDS     201
#define ROUND_NS   100000.0 /* one method in one round */
#define CHAIN      100      /* distinct functions */

/* What calls the methods keeps frame pointers, so that the one that follows
 * them gets to main. */
#pragma GCC optimize("no-omit-frame-pointer")

static uintptr_t pcs[MAX_FRAMES];
static struct cpprof__stack_view in_view;
static struct cpprof__stack_view no_view;

static double
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The methods: each walks its caller's stack and returns the frames found. */

static size_t
walk(struct cpprof__stack_view *view)
{
    struct cpprof__regs regs;
    enum cpprof__unwind_end end;
    size_t n;

    cpprof__regs_here(&regs);
    n = cpprof__unwind(&regs, view, pcs, MAX_FRAMES, &end);
    if (end != CPPROF__UNWIND_ROOT) {
        fprintf(stderr, "unwind: the walk did not reach the root\n");
        exit(1);
    }
    return n;
}

static size_t
by_cpprof(void)
{
    return walk(&in_view);
}

static size_t
by_cpprof_cold(void)
{
    cpprof__unwind_forget();
    return walk(&in_view);
}

static size_t
by_cpprof_window(void)
{
    return walk(&no_view);
}

/* libunwind has functions of the same names as libgcc and libc, and would be
 * called for them: all are looked up in the library they are meant to be of. */
typedef _Unwind_Reason_Code
backtrace_fn(_Unwind_Trace_Fn, void *);
typedef uintptr_t
get_ip_fn(struct _Unwind_Context *);

static backtrace_fn *libgcc_backtrace;
static get_ip_fn *libgcc_get_ip;
static int (*glibc_backtrace)(void **, int);

static void
look_up(const char *library, const char *name, void *function)
{
    void *handle = dlopen(library, RTLD_NOW);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;

    if (found == NULL) {
        fprintf(stderr, "unwind: %s has no %s\n", library, name);
        exit(1);
    }
    memcpy(function, &found, sizeof found);
}

struct trace {
    get_ip_fn *get_ip;
    size_t n;
};

static _Unwind_Reason_Code
on_frame(struct _Unwind_Context *context, void *arg)
{
    struct trace *t = arg;

    if (t->n == MAX_FRAMES)
        return _URC_END_OF_STACK;
    pcs[t->n++] = t->get_ip(context);
    return _URC_NO_REASON;
}

static size_t
by_libgcc(void)
{
    struct trace t = {.get_ip = libgcc_get_ip};

    libgcc_backtrace(on_frame, &t);
    return t.n;
}

static size_t
by_glibc(void)
{
    return (size_t)glibc_backtrace((void **)pcs, MAX_FRAMES);
}

static size_t
by_frame_pointer(void)
{
    const uintptr_t *fp = __builtin_frame_address(0);
    size_t n = 0;

    while ((uintptr_t)fp >= in_view.lo && (uintptr_t)fp + 16 <= in_view.hi &&
           n < MAX_FRAMES) {
        pcs[n++] = fp[1];
        if (fp[0] <= (uintptr_t)fp)
            break;
        fp = (const uintptr_t *)fp[0];
    }
    return n;
}

#ifdef HAVE_LIBUNWIND
static backtrace_fn *libunwind_backtrace;
static get_ip_fn *libunwind_get_ip;

static size_t
by_libunwind_gcc_name(void)
{
    struct trace t = {.get_ip = libunwind_get_ip};

    libunwind_backtrace(on_frame, &t);
    return t.n;
}

static size_t
by_libunwind(void)
{
    return (size_t)unw_backtrace((void **)pcs, MAX_FRAMES);
}

static size_t
by_libunwind_steps(void)
{
    unw_context_t context;
    unw_cursor_t cursor;
    size_t n = 0;

    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    do {
        unw_word_t ip;

        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        pcs[n++] = ip;
    } while (n < MAX_FRAMES && unw_step(&cursor) > 0);
    return n;
}
#endif

static void
look_up_peers(void)
{
    look_up("libgcc_s.so.1", "_Unwind_Backtrace", &libgcc_backtrace);
    look_up("libgcc_s.so.1", "_Unwind_GetIP", &libgcc_get_ip);
    look_up("libc.so.6", "backtrace", &glibc_backtrace);
#ifdef HAVE_LIBUNWIND
    look_up("libunwind.so.8", "_Unwind_Backtrace", &libunwind_backtrace);
    look_up("libunwind.so.8", "_Unwind_GetIP", &libunwind_get_ip);
#endif
}

struct method {
    const char *name;
    size_t (*walk)(void);
    int follows_fp;
    /* Results, at one depth. */
    size_t n_frames;
    size_t n_walks; /* in one round */
    double ns[ROUNDS];
};

static struct method methods[] = {
    {.name = "cpprof, warm", .walk = by_cpprof},
    {.name = "cpprof, cold", .walk = by_cpprof_cold},
    {.name = "cpprof, no stack in view", .walk = by_cpprof_window},
#ifdef HAVE_LIBUNWIND
    {.name = "libunwind unw_backtrace", .walk = by_libunwind},
    {.name = "libunwind unw_step", .walk = by_libunwind_steps},
    {.name = "libunwind _Unwind_Backtrace", .walk = by_libunwind_gcc_name},
#endif
    {.name = "libgcc _Unwind_Backtrace", .walk = by_libgcc},
    {.name = "glibc backtrace", .walk = by_glibc},
    {.name = "frame pointers", .walk = by_frame_pointer, .follows_fp = 1},
};
#define N_METHODS (sizeof methods / sizeof *methods)

static void
measure(struct method *m, unsigned round)
{
    double start = now_ns();
    size_t i;

    for (i = 0; i < m->n_walks; i++)
        m->n_frames = m->walk();
    m->ns[round] = (now_ns() - start) / (double)m->n_walks;
}

/* How many walks fill a round; warms up too. */
static void
prepare(struct method *m)
{
    m->n_walks = 20;
    measure(m, 0);
    measure(m, 0);
    m->n_walks = (size_t)(ROUND_NS / m->ns[0]) + 1;
}

/* A chain of functions, each with a frame of its own size, in two versions. */

struct job {
    int left; /* functions of the chain to go through */
    int follows_fp;
    unsigned round; /* or PREPARE */
};

#define PREPARE ROUNDS

typedef int
link(struct job *job);
static link *const links[CHAIN];
static link *const fp_links[CHAIN];

static __attribute__((noinline)) int
at_the_end(struct job *job)
{
    size_t i;

    for (i = 0; i < N_METHODS; i++) {
        if (methods[i].follows_fp != job->follows_fp)
            continue;
        if (job->round == PREPARE)
            prepare(&methods[i]);
        else
            measure(&methods[i], job->round);
    }
    return 0;
}

static inline __attribute__((always_inline)) int
go_on(struct job *job, link *const *chain)
{
    return job->left == 0 ? at_the_end(job) : chain[--job->left](job);
}

#define KEEP_FP __attribute__((noinline))
#define NO_FP   __attribute__((noinline, optimize("omit-frame-pointer")))
#define LINK(n)                                                                \
    static NO_FP int link_##n(struct job *job)                                 \
    {                                                                          \
        volatile char pad[16 + 24 * (n % 7)];                                  \
                                                                               \
        pad[0] = (char)n;                                                      \
        return go_on(job, links) + pad[0];                                     \
    }                                                                          \
    static KEEP_FP int fp_link_##n(struct job *job)                            \
    {                                                                          \
        volatile char pad[16 + 24 * (n % 7)];                                  \
                                                                               \
        pad[0] = (char)n;                                                      \
        return go_on(job, fp_links) + pad[0];                                  \
    }
#define TEN(X, n)                                                              \
    X(n##0)                                                                    \
    X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X)                                                             \
    TEN(X, 1)                                                                  \
    TEN(X, 2)                                                                  \
    TEN(X, 3)                                                                  \
    TEN(X, 4)                                                                  \
    TEN(X, 5) TEN(X, 6) TEN(X, 7) TEN(X, 8) TEN(X, 9) TEN(X, 10)
HUNDRED(LINK)

#define PLAIN_NAME(n) link_##n,
#define FP_NAME(n)    fp_link_##n,
static link *const links[CHAIN] = {HUNDRED(PLAIN_NAME)};
static link *const fp_links[CHAIN] = {HUNDRED(FP_NAME)};

/* Frames that are there without the chain: main and its callers, what calls
 * the method, the method. */
#define OTHER_FRAMES 7

static void
run(int n_frames, unsigned round)
{
    int follows_fp;

    for (follows_fp = 0; follows_fp <= 1; follows_fp++) {
        struct job job = {n_frames - OTHER_FRAMES, follows_fp, round};

        go_on(&job, follows_fp ? fp_links : links);
    }
}

/* The table. */

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(const struct method *m)
{
    double sorted[ROUNDS];

    memcpy(sorted, m->ns, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, by_value);
    return sorted[ROUNDS / 2];
}

static double
per_frame(const struct method *m)
{
    return median(m) / (double)m->n_frames;
}

static void
print_depth(void)
{
    double ours = per_frame(&methods[0]);
    size_t i;

    for (i = 0; i < N_METHODS; i++) {
        const struct method *m = &methods[i];

        printf("%-28s %7zu %10.0f %9.1f %9.2f\n", m->name, m->n_frames,
               median(m), per_frame(m), per_frame(m) / ours);
    }
    putchar('\n');
}

/* The rows are read directly from the stack of the calling thread. */
static void
find_stack(void)
{
    pthread_attr_t attributes;
    void *lo;
    size_t n;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &lo, &n) != 0) {
        fprintf(stderr, "unwind: the stack cannot be found\n");
        exit(1);
    }
    pthread_attr_destroy(&attributes);
    in_view.hi = (uintptr_t)lo + n;
    in_view.lo = (uintptr_t)__builtin_frame_address(0) - 65536;
}

int
main(void)
{
    static const int depths[] = {10, 37, 100};
    size_t i;
    unsigned round;

    find_stack();
    look_up_peers();
    cpprof__unwind_refresh_modules();
    printf("%-28s %7s %10s %9s %9s   (medians of %d rounds)\n", "unwinder",
           "frames", "ns/walk", "ns/frame", "ratio", ROUNDS);
    for (i = 0; i < sizeof depths / sizeof *depths; i++) {
        run(depths[i], PREPARE);
        for (round = 0; round < ROUNDS; round++)
            run(depths[i], round);
        print_depth();
    }
#ifndef HAVE_LIBUNWIND
    puts("libunwind: not there when this was built");
#endif
    return 0;
}
