/* SPDX-License-Identifier: MIT */
/*
 * The heap profile as text. Records are what was sampled, unscaled, and the
 * header says at which rate, as long as there was one rate only: the reader
 * scales them. Once the rate has changed, and for a peak, of which only
 * estimates are known, records are estimates and the header says that
 * everything was sampled.
 *
 * Source: Go runtime/pprof/pprof.go, writeHeapInternal.
 */
#include "base/file.h"
#include "base/status.h"
#include "collect/heap/heap_profile.h"
#include "collect/runtime/next.h"
#include "collect/runtime/own_threads.h"
#include "collect/signal/tables/reserve.h"
#include "own/memory.h"
#include "own/sort.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- scaling ---------------------------------------------------------- */

/* 1 - exp(-x), x >= 0, without libm: by powers of the 64th part of what is
 * left after whole multiples of ln 2, so that nothing is lost for a small x. */
static double
one_minus_exp(double x)
{
    const double ln2 = 0x1.62e42fefa39efp-1;
    double term, sum = 0, scale = 1;
    int i;

    if (x > 50)
        return 1;
    for (; x > ln2; x -= ln2)
        scale /= 2;
    for (i = 1, term = x; i < 24; i++) {
        sum += term;
        term *= -x / (i + 1);
    }
    return 1 - scale + scale * sum;
}

static int64_t
whole(double x)
{
    return x < 0x1p63 ? (int64_t)x : INT64_MAX;
}

void
cpprof_heap_scale_sample(int64_t count, int64_t size, int64_t rate,
                         int64_t *scaled_count, int64_t *scaled_size)
{
    double scale;

    if (!scaled_count || !scaled_size)
        return;
    *scaled_count = 0;
    *scaled_size = 0;
    if (count <= 0 || size <= 0)
        return;
    if (rate <= 1) {
        *scaled_count = count;
        *scaled_size = size;
        return;
    }
    scale = 1 / one_minus_exp((double)size / (double)count / (double)rate);
    *scaled_count = whole((double)count * scale);
    *scaled_size = whole((double)size * scale);
}

/*
 * The bytes that n sampled objects must have, so that a reader scales them to
 * `scaled` bytes. Their size s solves s / (1 - exp(-s / rate)) = scaled / n,
 * whose left side grows with s.
 */
static int64_t
unscale(int64_t n, int64_t scaled, int64_t rate)
{
    int64_t lo = n, hi = scaled > n ? scaled : n;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2, count, size;

        cpprof_heap_scale_sample(n, mid, rate, &count, &size);
        if (size < scaled)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- runtime.MemStats ------------------------------------------------- */

/*
 * The lines at the end: the memory of the process, under the names that Go's
 * runtime has for it. Sizes come from glibc's mallinfo2() if its malloc is in
 * use, else from /proc; C's malloc does not count its calls, so their counts
 * are estimates from the records; what only a garbage collector has is 0.
 *
 * Source: runtime.MemStats.
 */
struct stats {
    uint64_t alloc;       /* bytes in use */
    uint64_t total_alloc; /* ever: an estimate */
    uint64_t sys;         /* got from the kernel */
    uint64_t mallocs;     /* estimates */
    uint64_t frees;
    uint64_t heap_sys;
    uint64_t heap_idle;
    uint64_t heap_inuse;
    uint64_t stack; /* of the main thread */
    uint64_t max_rss;
};

/* As glibc's since 2.33; looked up, because it is not everywhere. */
struct libc_info {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks,
        fordblks, keepcost;
};

/* Is the malloc underneath that of the libc which has this function? */
static bool
is_libc_malloc(void *function)
{
    Dl_info of_libc, of_malloc;
    void *next = cpprof__next_symbol("malloc");

    return next && dladdr(function, &of_libc) && dladdr(next, &of_malloc) &&
           of_libc.dli_fbase == of_malloc.dli_fbase;
}

static bool
take_libc(struct stats *s)
{
    typedef struct libc_info info_fn(void);
    void *found = dlsym(RTLD_DEFAULT, "mallinfo2");
    struct libc_info info;

    if (!found || !is_libc_malloc(found))
        return false;
    info = ((info_fn *)(uintptr_t)found)();
    s->alloc = info.uordblks + info.hblkhd;
    s->heap_sys = info.arena + info.hblkhd;
    s->heap_inuse = s->alloc;
    s->heap_idle = info.fordblks;
    return true;
}

/* The number of kB behind a key of /proc/self/status, in bytes. */
static uint64_t
status_bytes(const char *status, const char *key)
{
    const char *at = cpprof__field(status, key);

    return at ? strtoull(at, NULL, 10) * 1024 : 0;
}

/* Tables and memory of ours, and stacks of threads of ours. */
static uint64_t
without_ours(uint64_t data)
{
    uint64_t ours = load_relaxed(&cpprof__reserved_bytes) +
                    cpprof__memory_bytes() +
                    cpprof__own_threads() * CPPROF__OWN_STACK;

    return data > ours ? data - ours : 0;
}

static void
take_proc(struct stats *s, bool has_heap)
{
    struct cpprof__buffer text = {0};
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0)
        s->max_rss = (uint64_t)usage.ru_maxrss * 1024;
    if (!cpprof__file_read(&text, "/proc/self/status", SIZE_MAX)) {
        const char *status = (const char *)text.data;
        uint64_t data = without_ours(status_bytes(status, "VmData"));
        uint64_t anonymous = status_bytes(status, "RssAnon");

        s->stack = status_bytes(status, "VmStk");
        s->sys = data + s->stack;
        if (!has_heap) {
            s->heap_sys = data;
            s->heap_inuse = anonymous < data ? anonymous : data;
            s->heap_idle = data - s->heap_inuse;
        }
    }
    cpprof__buffer_free(&text);
}

/* is_self: this process's, of libc's malloc and /proc; else only what the
 * records say. */
static struct stats
take_stats(bool is_self, const struct cpprof__heap_records *records)
{
    uint64_t inuse_objects = 0;
    struct stats stats = {0};
    size_t i;

    for (i = 0; i < records->n; i++) {
        const int64_t *values = records->records[i].values;

        stats.mallocs += (uint64_t)values[CPPROF__ALLOC_OBJECTS];
        stats.total_alloc += (uint64_t)values[CPPROF__ALLOC_BYTES];
        inuse_objects += (uint64_t)values[CPPROF__INUSE_OBJECTS];
        stats.alloc += (uint64_t)values[CPPROF__INUSE_BYTES];
    }
    stats.frees =
        stats.mallocs > inuse_objects ? stats.mallocs - inuse_objects : 0;
    if (is_self)
        take_proc(&stats, take_libc(&stats));
    /* Each is what somebody else counted. */
    if (stats.total_alloc < stats.alloc)
        stats.total_alloc = stats.alloc;
    if (stats.sys < stats.heap_sys + stats.stack)
        stats.sys = stats.heap_sys + stats.stack;
    return stats;
}

/* "[0 0 ... 0]", for the pauses of a garbage collector that is not there. */
static void
put_zeros(struct cpprof__text_profile *text, const char *name)
{
    int i;

    cpprof__text_printf(text, "# %s = [0", name);
    for (i = 1; i < 256; i++)
        cpprof__text_printf(text, " 0");
    cpprof__text_printf(text, "]\n");
}

static void
put_stats(struct cpprof__text_profile *text, const struct stats *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = {
        {"Alloc", s->alloc},
        {"TotalAlloc", s->total_alloc},
        {"Sys", s->sys},
        {"Lookups", 0},
        {"Mallocs", s->mallocs},
        {"Frees", s->frees},
        {"HeapAlloc", s->alloc},
        {"HeapSys", s->heap_sys},
        {"HeapIdle", s->heap_idle},
        {"HeapInuse", s->heap_inuse},
        {"HeapReleased", 0},
        {"HeapObjects", s->mallocs - s->frees},
    };
    size_t i;

    cpprof__text_printf(text, "\n# runtime.MemStats\n");
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        cpprof__text_printf(text, "# %s = %" PRIu64 "\n", sizes[i].name,
                            sizes[i].value);
    cpprof__text_printf(text, "# Stack = %" PRIu64 " / %" PRIu64 "\n", s->stack,
                        s->stack);
    cpprof__text_printf(text, "# MSpan = 0 / 0\n# MCache = 0 / 0\n"
                              "# BuckHashSys = 0\n# GCSys = 0\n"
                              "# OtherSys = 0\n# NextGC = 0\n# LastGC = 0\n");
    put_zeros(text, "PauseNs");
    put_zeros(text, "PauseEnd");
    cpprof__text_printf(text,
                        "# NumGC = 0\n# NumForcedGC = 0\n"
                        "# GCCPUFraction = 0\n# DebugGC = false\n"
                        "# MaxRSS = %" PRIu64 "\n",
                        s->max_rss);
}

/* ---- records ---------------------------------------------------------- */

/* A record as it is printed. */
struct printed {
    int64_t values[CPPROF__HEAP_VALUES];
    const struct cpprof__heap_record *record; /* NULL: lost samples */
};

static int
by_inuse(const void *a, const void *b)
{
    const struct printed *x = a, *y = b;
    int64_t in_x = x->values[CPPROF__INUSE_BYTES];
    int64_t in_y = y->values[CPPROF__INUSE_BYTES];

    if (in_x != in_y)
        return in_x < in_y ? 1 : -1;
    if (!x->record || !y->record)
        return !x->record - !y->record;
    return (y->record->bucket > x->record->bucket) -
           (y->record->bucket < x->record->bucket);
}

/* The records as they are printed, sorted, and *n, how many; NULL: no memory.
 */
static struct printed *
sort_records(const struct cpprof__heap_records *records, bool is_scaled,
             size_t *n)
{
    struct printed *all = cpprof__calloc(records->n + 1, sizeof *all);
    size_t i;

    if (!all)
        return NULL;
    for (i = 0; i < records->n; i++) {
        all[i].record = &records->records[i];
        memcpy(all[i].values,
               is_scaled ? records->records[i].values
                         : records->records[i].sampled,
               sizeof all[i].values);
    }
    *n = records->n;
    if (records->n_lost) {
        int64_t *lost = all[(*n)++].values;

        lost[CPPROF__ALLOC_OBJECTS] =
            is_scaled ? records->lost_objects : records->n_lost;
        lost[CPPROF__ALLOC_BYTES] =
            is_scaled
                ? records->lost_bytes
                : unscale(records->n_lost, records->lost_bytes, records->rate);
    }
    cpprof__sort(all, *n, sizeof *all, by_inuse);
    return all;
}

/*
 * If both totals are equal, readers think that allocations were not recorded.
 * Go then adds one byte, and so do we.
 */
static void
put_head(struct cpprof__text_profile *text, const struct printed *all, size_t n,
         int64_t rate)
{
    int64_t total[CPPROF__HEAP_VALUES] = {0};
    size_t i, value;

    for (i = 0; i < n; i++)
        for (value = 0; value < CPPROF__HEAP_VALUES; value++)
            total[value] += all[i].values[value];
    if (total[CPPROF__INUSE_BYTES] == total[CPPROF__ALLOC_BYTES])
        total[CPPROF__ALLOC_BYTES]++;
    cpprof__text_printf(text,
                        "heap profile: %" PRId64 ": %" PRId64 " [%" PRId64
                        ": %" PRId64 "] @ heap/%" PRId64 "\n",
                        total[CPPROF__INUSE_OBJECTS],
                        total[CPPROF__INUSE_BYTES],
                        total[CPPROF__ALLOC_OBJECTS],
                        total[CPPROF__ALLOC_BYTES], 2 * (rate < 1 ? 1 : rate));
}

static void
put_record(struct cpprof__source_profile *w, const struct printed *p,
           bool names)
{
    const struct cpprof__heap_record *record = p->record;

    cpprof__text_printf(
        &w->text, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @",
        p->values[CPPROF__INUSE_OBJECTS], p->values[CPPROF__INUSE_BYTES],
        p->values[CPPROF__ALLOC_OBJECTS], p->values[CPPROF__ALLOC_BYTES]);
    cpprof__source_put_record(
        w,
        cpprof__source_text_stack(w,
                                  record ? record->stack : CPPROF__SOURCE_LOST),
        record ? record->labels : 0, names);
}

enum cpprof_status
cpprof__heap_write_text(const struct cpprof__source *source,
                        const struct cpprof_heap_options *options,
                        const struct cpprof__heap_records *records,
                        struct cpprof_writer writer, struct cpprof_error *error)
{
    bool names = options->debug > 0, is_scaled;
    struct cpprof__source_profile *w = cpprof__source_profile_make(
        source, names ? options->symbolize : CPPROF_SYMBOLIZE_NONE, &writer,
        error);
    struct printed *all;
    struct stats stats;
    enum cpprof_status status;
    size_t i, n = 0;

    if (!w)
        return CPPROF_NOMEM;
    stats = take_stats(source->is_self, records);
    cpprof__source_begin_text(w, writer);
    w->text.hides = cpprof__heap_hides;
    is_scaled = records->n_rates > 0 || (options->flags & CPPROF_FLAG_PEAK);
    all = sort_records(records, is_scaled, &n);
    if (!all)
        cpprof__fail_nomem(&w->text.error);
    else
        put_head(&w->text, all, n, is_scaled ? 1 : records->rate);
    for (i = 0; i < n && w->text.error.status == CPPROF_OK; i++)
        put_record(w, &all[i], names);
    if (all)
        put_stats(&w->text, &stats);
    cpprof__free(all);
    status = cpprof__text_end(&w->text, error);
    cpprof__source_profile_free(w);
    return status;
}
