/* SPDX-License-Identifier: MIT */
/*
 * Is what a heap profile says true? The test counts what it does and reads what
 * was written about it.
 *
 *     heap_truth         some seconds, at a high sampling rate
 *     heap_truth long    at 512 KiB, on many stacks, and with 10^9 operations
 *
 * How exact can it be: a block of n bytes is sampled with the probability
 * p = 1 - exp(-n / rate) and stands for 1 / p blocks, so the variance of the
 * estimate of N blocks is N (1 - p) / p. Each size gets V bytes in a run, of
 * which half stay; so the relative error of what is in use, the mean of 200
 * runs, is about sqrt(2 rate / (200 V)): with V = 800 rates, 0.35 % for a size
 * alone, and less for the sums. 1 % is asked of the sums; each size may be off
 * by five of its errors, of which chance makes one in 1.7 million. The mean
 * square of the errors of single runs must be what the variance says, too.
 */
#include "../unit/views.h"
#include "memory.h"
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/pprof/profile.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum value { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, N_VALUES };
static const char *const value_names[N_VALUES] = {
    "alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};

/* --- reading what was written --------------------------------------------- */

static struct pprof_profile *
profile_of(const struct cpprof_heap *heap, enum cpprof_symbolize symbolize)
{
    struct cpprof_heap_options options = {
        .size = sizeof options, .symbolize = symbolize, .heap = heap};
    struct memory memory;
    struct pprof_profile *profile;
    struct cpprof_error error;

    if (cpprof_heap_write((struct cpprof_writer[]){memory_writer(&memory)},
                          &options, &error))
        bail("write: %s", error.text);
    if (pprof_read_data(memory.data, memory.n, NULL, &profile, &error))
        bail("read: %s", error.text);
    free(memory.data);
    return profile;
}

/* The size of the objects of a sample. */
static int64_t
object_bytes(const struct pprof_profile *p, const struct pprof_sample *s)
{
    size_t i;

    for (i = 0; i < s->n_labels; i++)
        if (!strcmp(pprof_text(p, s->labels[i].key, NULL), "bytes"))
            return s->labels[i].num;
    return 0;
}

/* Is a function of this name in the stack? */
static bool
is_in(const struct pprof_profile *p, const struct pprof_sample *s,
      const char *name)
{
    const struct pprof_location *locations = pprof_locations(p);
    const struct pprof_line *lines = pprof_lines(p);
    const struct pprof_function *functions = pprof_functions(p);
    size_t i, k;

    for (i = 0; i < s->n_locations; i++) {
        const struct pprof_location *l = &locations[s->locations[i]];

        for (k = 0; k < l->n_lines; k++)
            if (!strcmp(pprof_text(
                            p,
                            functions[lines[l->first_line + k].function].name,
                            NULL),
                        name))
                return true;
    }
    return false;
}

/* Sums of the samples with this function (NULL: all) into values. Returns how
 * many samples. */
static size_t
sums_of(const struct cpprof_heap *heap, const char *function,
        int64_t values[N_VALUES])
{
    struct pprof_profile *p = profile_of(
        heap, function ? CPPROF_SYMBOLIZE_FUNCTIONS : CPPROF_SYMBOLIZE_NONE);
    size_t n = pprof_sample_count(p), i, seen = 0;
    int k;

    memset(values, 0, N_VALUES * sizeof *values);
    for (i = 0; i < n; i++) {
        struct pprof_sample s = sample_of(p, i);

        if (function && !is_in(p, &s, function))
            continue;
        seen++;
        for (k = 0; k < N_VALUES; k++)
            values[k] += s.values[k];
    }
    pprof_free(p);
    return seen;
}

/* --- a workload that is counted ------------------------------------------- */

#define N_SIZES 12
#define N_RUNS  200
static const size_t sizes[N_SIZES] = {
    8, 16, 48, 128, 500, 1200, 4096, 20000, 100000, 1 << 20, 8 << 20, 64 << 20};

/* By size: what was done, and what the profile says. */
struct counts {
    double values[N_SIZES][N_VALUES];
};

/* What is to be: the bytes of each size in a run, in rates. */
struct plan {
    int64_t rate;
    double rates_per_size;
    unsigned n_stacks; /* a power of two */
    struct cpprof_heap *heap;
};

static uint64_t random_state = 1;

static uint32_t
draw(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* Blocks of a run have numbers; these are made-up addresses, since they are not
 * read. Every second one stays, by chance. */
static const void *
address_of(uint64_t number)
{
    return (const void *)(uintptr_t)(0x100000000000u + number * 16);
}

static bool
stays(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15u >> 63;
}

/* Sizes by chance, each as often as its bytes ask for, so that they are mixed
 * on each stack; as thresholds for draw(). */
static uint64_t
thresholds(const struct plan *plan, uint32_t limits[N_SIZES])
{
    double n[N_SIZES], all = 0, sum = 0;
    size_t i;

    for (i = 0; i < N_SIZES; i++)
        all += n[i] =
            plan->rates_per_size * (double)plan->rate / (double)sizes[i];
    for (i = 0; i < N_SIZES; i++) {
        sum += n[i];
        limits[i] = (uint32_t)fmin(sum / all * 4294967296.0, 4294967295.0);
    }
    limits[N_SIZES - 1] = UINT32_MAX;
    return (uint64_t)all;
}

struct batch {
    const struct plan *plan;
    const uint32_t *limits;
    struct counts *counts;
    uint64_t first, end;
};

__attribute__((noinline)) static void
record_batch(const struct batch *b)
{
    uint64_t number;

    for (number = b->first; number < b->end; number++) {
        const void *address = address_of(number);
        uint32_t chance = draw();
        size_t i = 0;

        while (chance > b->limits[i])
            i++;
        cpprof_heap_record_in(b->plan->heap, address, sizes[i]);
        b->counts->values[i][ALLOC_OBJECTS]++;
        if (stays(number))
            b->counts->values[i][INUSE_OBJECTS]++;
        else
            cpprof_heap_release_in(b->plan->heap, address);
    }
}

/* A stack for each path: two call sites at every level. */
__attribute__((noinline)) static void
walk_path(unsigned path, unsigned n_paths, const struct batch *b)
{
    volatile unsigned here = path;

    if (n_paths <= 1)
        record_batch(b);
    else if (path & 1)
        walk_path(path >> 1, n_paths >> 1, b);
    else
        walk_path(path >> 1, n_paths >> 1, b);
    here++; /* neither call is a jump, and they are not one */
    if (path & 1)
        here++;
}

static void
add_spaces(struct counts *c)
{
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        c->values[i][ALLOC_SPACE] =
            c->values[i][ALLOC_OBJECTS] * (double)sizes[i];
        c->values[i][INUSE_SPACE] =
            c->values[i][INUSE_OBJECTS] * (double)sizes[i];
    }
}

/* Do a run; its blocks that stay are released by end_run(). */
static uint64_t
run(const struct plan *plan, struct counts *counts)
{
    uint32_t limits[N_SIZES];
    uint64_t n = thresholds(plan, limits), first;

    memset(counts, 0, sizeof *counts);
    for (first = 0; first < n; first += 64) {
        struct batch b = {plan, limits, counts, first,
                          first + 64 < n ? first + 64 : n};

        walk_path(draw() & (plan->n_stacks - 1), plan->n_stacks, &b);
    }
    add_spaces(counts);
    return n;
}

static void
end_run(const struct plan *plan, uint64_t n)
{
    uint64_t number;

    for (number = 0; number < n; number++)
        if (stays(number))
            cpprof_heap_release_in(plan->heap, address_of(number));
}

/* What the profile says, by size. All sizes are in classes of their own. */
static void
seen(const struct plan *plan, struct counts *said)
{
    struct pprof_profile *p = profile_of(plan->heap, CPPROF_SYMBOLIZE_NONE);
    size_t n = pprof_sample_count(p), i, k;
    int v;

    memset(said, 0, sizeof *said);
    for (i = 0; i < n; i++) {
        struct pprof_sample s = sample_of(p, i);
        int64_t bytes = object_bytes(p, &s);

        for (k = 0; k < N_SIZES && (int64_t)sizes[k] != bytes; k++)
            continue;
        if (k == N_SIZES)
            bail("a sample of %lld bytes, which nobody made", (long long)bytes);
        for (v = 0; v < N_VALUES; v++)
            said->values[k][v] += (double)s.values[v];
    }
    pprof_free(p);
}

/* --- estimates ------------------------------------------------------------ */

/* Sums over the runs, by size; the last place is for all sizes. */
struct tally {
    double said[N_SIZES + 1][N_VALUES];
    double exact[N_SIZES + 1][N_VALUES];
    double variance[N_SIZES + 1][N_VALUES]; /* as it should be */
    double square[N_SIZES + 1][N_VALUES];   /* of the errors, as it was */
};

static void
tally_run(struct tally *t, const struct plan *plan, const struct counts *exact,
          const struct counts *said)
{
    int v;

    for (v = 0; v < N_VALUES; v++) {
        double all_error = 0;
        size_t i;

        for (i = 0; i < N_SIZES; i++) {
            double x = exact->values[i][v], error = said->values[i][v] - x;
            double q = exp(-(double)sizes[i] / (double)plan->rate);
            double unit = v & 1 ? (double)sizes[i] : 1;
            double variance = x * unit * q / (1 - q);

            t->said[i][v] += said->values[i][v];
            t->exact[i][v] += x;
            t->variance[i][v] += variance;
            t->square[i][v] += error * error;
            all_error += error;
            t->said[N_SIZES][v] += said->values[i][v];
            t->exact[N_SIZES][v] += x;
            t->variance[N_SIZES][v] += variance;
        }
        t->square[N_SIZES][v] += all_error * all_error;
    }
}

/*
 * The worst of the sizes, in standard errors. Whole numbers are written, and
 * each record goes up or down by a chance that is the same in all runs: at most
 * half a unit a record (and for what was allocated, which is summed up, only
 * once). Of a size that is hardly ever missed one or two blocks may be: their
 * number is Poisson's, far from normal.
 */
static double
worst_size(const struct tally *t, int v, unsigned n_stacks)
{
    double rounds = v >= INUSE_OBJECTS ? N_RUNS : 1, worst = 0;
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        double block = v & 1 ? (double)sizes[i] : 1;
        double error = fabs(t->said[i][v] - t->exact[i][v]) - 2 * block;
        double variance = t->variance[i][v] + rounds * rounds / 4 * n_stacks;

        worst = fmax(worst, error / sqrt(variance));
    }
    return worst;
}

static void
judge(const struct tally *t, const char *stacks, unsigned n_stacks)
{
    char name[128];
    int v;

    for (v = 0; v < N_VALUES; v++) {
        double exact = t->exact[N_SIZES][v];
        double worst = worst_size(t, v, n_stacks);
        double error = (t->said[N_SIZES][v] - exact) / exact * 100;

        note("%s, %s: off by %+.3f %%, standard error %.3f %%; worst size %.1f "
             "errors; variance %.2f of what it should be",
             stacks, value_names[v], error,
             sqrt(t->variance[N_SIZES][v]) / exact * 100, worst,
             t->square[N_SIZES][v] / t->variance[N_SIZES][v]);
        snprintf(name, sizeof name, "%s: mean of %s within 1 %%", stacks,
                 value_names[v]);
        check_near(error, 0, 1, name);
        snprintf(name, sizeof name, "%s: %s of each size is unbiased", stacks,
                 value_names[v]);
        check_at_most(worst, 5, name);
        /* 200 squares: their mean varies by sqrt(2 / 200) = 10 %. */
        snprintf(name, sizeof name, "%s: %s varies as it should", stacks,
                 value_names[v]);
        check_near(t->square[N_SIZES][v] / t->variance[N_SIZES][v], 1, 0.5,
                   name);
    }
}

static void
subtract(struct counts *now, const struct counts *before)
{
    size_t i;

    for (i = 0; i < N_SIZES; i++) {
        now->values[i][ALLOC_OBJECTS] -= before->values[i][ALLOC_OBJECTS];
        now->values[i][ALLOC_SPACE] -= before->values[i][ALLOC_SPACE];
    }
}

/* What was ever allocated is summed up over all runs; what is in use is not. */
static void
estimates(struct plan *plan, const char *name)
{
    static struct tally tally;
    struct counts exact, said, last, before;
    int64_t left[N_VALUES];
    struct cpprof_error error;
    uint64_t n;
    int i;

    if (cpprof_heap_new(name, &plan->heap, &error))
        bail("heap_new: %s", error.text);
    cpprof_heap_set_rate(plan->rate);
    memset(&tally, 0, sizeof tally);
    memset(&before, 0, sizeof before);
    for (i = 0; i < N_RUNS; i++) {
        n = run(plan, &exact);
        seen(plan, &said);
        last = said;
        subtract(&said, &before);
        before = last;
        tally_run(&tally, plan, &exact, &said);
        end_run(plan, n);
    }
    judge(&tally, name, plan->n_stacks);
    sums_of(plan->heap, NULL, left);
    check_equal(left[INUSE_OBJECTS], 0, "what was released is gone");
    check_equal(left[INUSE_SPACE], 0, "and so are its bytes");
}

/* --- malloc and free across threads --------------------------------------- */

#define N_SLOTS   4096
#define N_CHURNS  4
#define MAX_BYTES 256

/* Blocks change hands here: who puts one in takes out another, whoever made it.
 * The first word of a block is its size. */
static uint64_t *slots[N_SLOTS];

struct churn {
    pthread_t thread;
    uint64_t seed;
    uint64_t n; /* operations */
};

__attribute__((noinline)) static uint64_t *
churn_block(size_t n)
{
    uint64_t *block = malloc(n);

    if (!block)
        bail("no memory");
    *block = n;
    return block;
}

__attribute__((noinline)) static uint64_t *
churn_resize(uint64_t *block, size_t n)
{
    block = realloc(block, n);
    if (!block)
        bail("no memory");
    *block = n;
    return block;
}

static void *
churn(void *data)
{
    struct churn *c = data;
    uint64_t x = c->seed, i;

    for (i = 0; i < c->n; i += 2) {
        uint64_t *block;
        size_t at;

        x = x * 6364136223846793005u + 1442695040888963407u;
        at = x >> 52 & (N_SLOTS - 1);
        block = churn_block(sizeof *block + (x >> 40 & (MAX_BYTES - 1)));
        if ((x >> 32 & 15) == 0)
            block = churn_resize(block, sizeof *block + (x >> 24 & 1023));
        block = __atomic_exchange_n(&slots[at], block, __ATOMIC_ACQ_REL);
        free(block);
    }
    return NULL;
}

static void
churn_threads(uint64_t n_operations)
{
    static uint64_t seed = 1;
    struct churn churns[N_CHURNS];
    int i;

    for (i = 0; i < N_CHURNS; i++) {
        churns[i].seed = seed += 0x9e3779b97f4a7c15u;
        churns[i].n = n_operations / N_CHURNS;
        if (pthread_create(&churns[i].thread, NULL, churn, &churns[i]))
            bail("pthread_create");
    }
    for (i = 0; i < N_CHURNS; i++)
        pthread_join(churns[i].thread, NULL);
}

static int64_t
slots_in_use(int64_t *bytes)
{
    int64_t n = 0;
    size_t i;

    *bytes = 0;
    for (i = 0; i < N_SLOTS; i++)
        if (slots[i]) {
            n++;
            *bytes += (int64_t)*slots[i];
        }
    return n;
}

static void
empty_slots(void)
{
    size_t i;

    for (i = 0; i < N_SLOTS; i++) {
        free(slots[i]);
        slots[i] = NULL;
    }
}

/* At rate 1 nothing is estimated: the profile is exact. */
static void
everything_is_exact(void)
{
    int64_t values[N_VALUES], bytes, n;

    cpprof_heap_set_rate(1);
    churn_threads(400000);
    n = slots_in_use(&bytes);
    sums_of(NULL, "churn", values);
    check_equal(values[INUSE_OBJECTS], n, "at rate 1 objects in use are exact");
    check_equal(values[INUSE_SPACE], bytes, "at rate 1 bytes in use are exact");
    check_at_least((double)values[ALLOC_OBJECTS], 200000,
                   "at rate 1 every allocation is counted");
    cpprof_heap_set_rate(0);
    empty_slots();
    sums_of(NULL, "churn", values);
    check_equal(values[INUSE_OBJECTS], 0,
                "blocks freed while nothing is sampled are gone");
}

static void
nothing_drifts(int64_t rate, uint64_t n_operations)
{
    int64_t values[N_VALUES], before[N_VALUES], bytes;

    sums_of(NULL, "churn", before);
    cpprof_heap_set_rate(rate);
    churn_threads(n_operations);
    sums_of(NULL, "churn", values);
    slots_in_use(&bytes);
    note("%.0e operations: %lld bytes in use, %lld said; %lld allocated",
         (double)n_operations, (long long)bytes, (long long)values[INUSE_SPACE],
         (long long)(values[ALLOC_OBJECTS] - before[ALLOC_OBJECTS]));
    /* Half the operations allocate, one in sixteen of these once more. */
    check_near((double)(values[ALLOC_OBJECTS] - before[ALLOC_OBJECTS]),
               (double)n_operations / 2 * 17 / 16, (double)n_operations / 40,
               "operations of all threads are counted");
    check_near((double)values[INUSE_SPACE], (double)bytes,
               6 * sqrt((double)bytes * (double)rate),
               "bytes in use are as many as there are");
    empty_slots();
    sums_of(NULL, "churn", values);
    check_equal(values[INUSE_OBJECTS], 0,
                "every sampled block that was freed is gone");
    check_equal(values[INUSE_SPACE], 0, "and so are its bytes");
}

int
main(int argc, char **argv)
{
    bool is_long = argc > 1 && !strcmp(argv[1], "long");
    /* What is counted in rates is as exact at any rate; the lower it is, the
     * fewer small blocks make up as many rates. */
    struct plan plan = {.rate = is_long ? 524288 : 2048,
                        .rates_per_size = is_long ? 300 : 800};

    if (!is_long) {
        plan.n_stacks = 1;
        estimates(&plan, "one stack");
    }
    plan.n_stacks = 256;
    estimates(&plan, "many stacks");
    everything_is_exact();
    nothing_drifts(is_long ? 65536 : 1024, is_long ? 1000000000u : 10000000u);
    return check_done();
}
