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
#include "arch/atomic.h"
#include "base/status.h"
#include "collect/encode/record_labels.h"
#include "collect/encode/text_profile.h"
#include "collect/heap/heap_hide.h"
#include "collect/heap/heap_profile.h"
#include "collect/heap/heap_stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 1024

struct work {
    struct cpprof__text_profile text;
    const struct cpprof__source *source;
    bool is_scaled;
    bool names; /* of the frames, in comments */
    struct cpprof__builder_frame stack[DEPTH_MAX];
    struct cpprof__label_list labels;
};

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

static void
set_lost(struct printed *p, const struct work *w,
         const struct cpprof__heap_records *records)
{
    memset(p, 0, sizeof *p);
    p->values[CPPROF__ALLOC_OBJECTS] =
        w->is_scaled ? records->lost_objects : records->n_lost;
    p->values[CPPROF__ALLOC_BYTES] =
        w->is_scaled
            ? records->lost_bytes
            : unscale(records->n_lost, records->lost_bytes, records->rate);
}

static struct printed *
sort_records(const struct work *w, const struct cpprof__heap_records *records,
             size_t *n)
{
    struct printed *all = calloc(records->n + 1, sizeof *all);
    size_t i;

    if (!all)
        return NULL;
    for (i = 0; i < records->n; i++) {
        all[i].record = &records->records[i];
        memcpy(all[i].values,
               w->is_scaled ? records->records[i].values
                            : records->records[i].sampled,
               sizeof all[i].values);
    }
    *n = records->n;
    if (records->n_lost)
        set_lost(&all[(*n)++], w, records);
    qsort(all, *n, sizeof *all, by_inuse);
    return all;
}

/*
 * If both totals are equal, readers think that allocations were not recorded.
 * Go then adds one byte, and so do we.
 */
static void
put_head(struct work *w, const struct printed *all, size_t n, int64_t rate)
{
    int64_t total[CPPROF__HEAP_VALUES] = {0};
    size_t i, value;

    for (i = 0; i < n; i++)
        for (value = 0; value < CPPROF__HEAP_VALUES; value++)
            total[value] += all[i].values[value];
    if (total[CPPROF__INUSE_BYTES] == total[CPPROF__ALLOC_BYTES])
        total[CPPROF__ALLOC_BYTES]++;
    cpprof__text_printf(
        &w->text,
        "heap profile: %" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64
        "] @ heap/%" PRId64 "\n",
        total[CPPROF__INUSE_OBJECTS], total[CPPROF__INUSE_BYTES],
        total[CPPROF__ALLOC_OBJECTS], total[CPPROF__ALLOC_BYTES],
        2 * (w->is_scaled || rate < 1 ? 1 : rate));
}

static void
put_record(struct work *w, const struct printed *p)
{
    size_t n = 1;

    cpprof__text_printf(
        &w->text, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @",
        p->values[CPPROF__INUSE_OBJECTS], p->values[CPPROF__INUSE_BYTES],
        p->values[CPPROF__ALLOC_OBJECTS], p->values[CPPROF__ALLOC_BYTES]);
    w->stack[0] =
        (struct cpprof__builder_frame){CPPROF__FRAME_LOST, CPPROF__NO_MAPPING};
    if (p->record)
        n = cpprof__source_stack(w->source, p->record->stack, w->text.mappings,
                                 w->text.n_mappings, w->stack, DEPTH_MAX);
    cpprof__text_addresses(&w->text, w->stack, n);
    if (p->record)
        cpprof__record_labels_text(&w->text, w->source, p->record->labels,
                                   &w->labels);
    if (w->names)
        cpprof__text_stack(&w->text, w->stack, n);
}

static void
put_all(struct work *w, const struct cpprof__heap_records *records,
        const struct cpprof__heap_stats *stats)
{
    struct printed *all;
    size_t i, n;

    all = sort_records(w, records, &n);
    if (!all) {
        cpprof__fail_nomem(&w->text.error);
        return;
    }
    put_head(w, all, n, records->rate);
    cpprof__text_add_mappings(&w->text, w->source->tables);
    for (i = 0; i < n && w->text.error.status == CPPROF_OK; i++)
        put_record(w, &all[i]);
    cpprof__heap_stats_print(stats, &w->text);
    free(all);
}

enum cpprof_status
cpprof__heap_write_text(const struct cpprof__source *source,
                        const struct cpprof_heap_options *options,
                        const struct cpprof__heap_records *records,
                        struct cpprof_writer writer, struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    struct cpprof__symbolizer *symbolizer;
    struct cpprof__heap_stats stats;
    enum cpprof_status status;

    if (!w) {
        if (writer.close)
            writer.close(writer.ctx, 1);
        return cpprof__fail_nomem(error);
    }
    cpprof__heap_stats_take(source->is_self, records, &stats);
    w->names = options->debug > 0;
    symbolizer = cpprof__source_symbolizer(
        source, w->names ? options->symbolize : CPPROF_SYMBOLIZE_NONE);
    w->source = source;
    w->is_scaled =
        records->n_rates > 0 || (options->flags & CPPROF_FLAG_PEAK) != 0;
    cpprof__text_begin(&w->text, writer, source->ops, symbolizer);
    w->text.hides = cpprof__heap_hides;
    put_all(w, records, &stats);
    status = cpprof__text_end(&w->text, error);
    if (symbolizer)
        source->ops->free(symbolizer);
    cpprof__label_list_free(&w->labels);
    free(w);
    return status;
}
