/* SPDX-License-Identifier: MIT */
#include "collect/encode/kept_symbolizer.h"

#include "arch/atomic.h"

#include <pthread.h>
#include <string.h>

/* Tunable: what is held for the next process at most. Less: large files are
 * read again for each. */
#define KEPT_BYTES ((size_t)256 << 20)

/* Who has set in_use owns the rest, but for `inner`, which never changes while
 * there are profiles. */
static struct {
    const struct cpprof__symbolizer_ops *inner;
    struct cpprof__symbolizer_options options;
    struct cpprof__symbolizer *symbolizer; /* NULL: none yet */
    uint32_t in_use;
} kept;

/* But for the process. */
static bool
is_same(const struct cpprof__symbolizer_options *a,
        const struct cpprof__symbolizer_options *b)
{
    return a->functions_only == b->functions_only &&
           a->addresses == b->addresses &&
           !memcmp(&a->fetcher, &b->fetcher, sizeof a->fetcher);
}

static struct cpprof__symbolizer *
make(const struct cpprof__symbolizer_options *options)
{
    struct cpprof__symbolizer *s;

    if (swap_acq_rel(&kept.in_use, 1))
        return kept.inner->make(options);
    s = load_relaxed(&kept.symbolizer);
    if (s && !is_same(&kept.options, options)) {
        kept.inner->free(s);
        s = NULL;
    }
    if (s) {
        kept.inner->turn_to(s, options->pid);
        kept.inner->trim(s, KEPT_BYTES);
    } else {
        s = kept.inner->make(options);
    }
    kept.options = *options;
    store_relaxed(&kept.symbolizer, s);
    if (!s)
        store_release(&kept.in_use, 0);
    return s;
}

static void
done_with(struct cpprof__symbolizer *s)
{
    if (s && s == load_relaxed(&kept.symbolizer))
        store_release(&kept.in_use, 0);
    else
        kept.inner->free(s);
}

const struct cpprof__symbolizer_ops *
cpprof__kept_symbolizer_load(void)
{
    const struct cpprof__symbolizer_ops *inner = cpprof__symbolizer_load();
    static struct cpprof__symbolizer_ops ops;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    if (!inner)
        return NULL;
    pthread_mutex_lock(&lock);
    if (kept.inner != inner) {
        ops = *inner;
        ops.make = make;
        ops.free = done_with;
        kept.inner = inner;
    }
    pthread_mutex_unlock(&lock);
    return &ops;
}

void
cpprof__kept_symbolizer_free(void)
{
    if (swap_acq_rel(&kept.in_use, 1))
        return;
    if (kept.symbolizer)
        kept.inner->free(kept.symbolizer);
    store_relaxed(&kept.symbolizer, (struct cpprof__symbolizer *)NULL);
    store_release(&kept.in_use, 0);
}
