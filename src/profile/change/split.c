/* SPDX-License-Identifier: MIT */
/*
 * Halves a profile until its parts fit. Each part has only the stacks and names
 * of its samples, so a part may be much smaller than its share.
 */
#include "profile/change/split.h"

#include "base/status.h"
#include "profile/model/model.h"
#include "profile/proto/encode.h"

#include <cpprof/pprof/build.h>
#include <cpprof/pprof/change.h>

#define NS_PER_MS 1000000ll

struct splitter {
    struct cpprof__split_limits limits;
    bool (*use)(void *ctx, const struct pprof_profile *part,
                struct cpprof__buffer *plain);
    void *ctx;
    int64_t time_ns; /* of the whole */
    unsigned n_used;
    bool is_over;
};

/* The samples that stay: some of one profile, in their order. */
struct range {
    size_t at, first, end;
};

static bool
is_in(void *ctx, struct cpprof__sample *sample)
{
    struct range *r = ctx;

    (void)sample;
    r->at++;
    return r->at > r->first && r->at <= r->end;
}

/* Replace a profile by one that has what its samples need. */
static enum cpprof_status
make_small(struct pprof_profile **p, struct cpprof_error *error)
{
    struct pprof_merger *merger = NULL;
    struct pprof_profile *small = NULL;
    enum cpprof_status status = pprof_merger_new(&merger, error);

    if (status == CPPROF_OK)
        status = pprof_merger_add(merger, *p, error);
    if (status == CPPROF_OK)
        status = pprof_merger_finish(merger, &small, error);
    pprof_merger_free(merger);
    if (status == CPPROF_OK) {
        pprof_free(*p);
        *p = small;
    }
    return status;
}

static int
append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

static enum cpprof_status
encode(const struct pprof_profile *p, struct cpprof__buffer *plain,
       struct cpprof_error *error)
{
    struct cpprof__sink sink = {
        .writer = {sizeof sink.writer, append, NULL, plain}};
    enum cpprof_status status =
        cpprof__sink_end(&sink, cpprof__encode(p, &sink, error), error);

    return status == CPPROF_OK && plain->failed ? cpprof__fail_nomem(error)
                                                : status;
}

static enum cpprof_status
use_range(struct splitter *s, const struct pprof_profile *p, struct range range,
          struct cpprof_error *error);

/* Halves, until they fit. A sample that is too large is left to the server. */
static enum cpprof_status
use_part(struct splitter *s, const struct pprof_profile *p,
         struct cpprof_error *error)
{
    struct cpprof__buffer plain = {0};
    size_t n = pprof_sample_count(p);
    bool fits = n <= s->limits.n_samples;
    enum cpprof_status status = CPPROF_OK;

    if (fits)
        status = encode(p, &plain, error);
    if (status == CPPROF_OK && fits &&
        (plain.n <= s->limits.n_bytes || n < 2)) {
        s->n_used++;
        s->is_over = !s->use(s->ctx, p, &plain);
    } else if (status == CPPROF_OK) {
        cpprof__buffer_free(&plain);
        status = use_range(s, p, (struct range){0, 0, n / 2}, error);
        if (status == CPPROF_OK && !s->is_over)
            status = use_range(s, p, (struct range){0, n / 2, n}, error);
    }
    cpprof__buffer_free(&plain);
    return status;
}

/* Of profiles of one series and one millisecond Pyroscope's queries have one,
 * so each part begins later than the one before. */
static void
set_time(const struct splitter *s, struct pprof_profile *part)
{
    struct pprof_info info = {.size = sizeof info};

    pprof_get_info(part, &info);
    if (s->time_ns)
        pprof_set_time(part, s->time_ns + s->n_used * NS_PER_MS,
                       info.duration_ns);
}

static enum cpprof_status
use_range(struct splitter *s, const struct pprof_profile *p, struct range range,
          struct cpprof_error *error)
{
    struct pprof_profile *part = NULL;
    enum cpprof_status status = pprof_copy(p, &part, error);

    if (status == CPPROF_OK) {
        cpprof__keep_samples(part, is_in, &range);
        status = make_small(&part, error);
    }
    if (status == CPPROF_OK) {
        set_time(s, part);
        status = use_part(s, part, error);
    }
    pprof_free(part);
    return status;
}

enum cpprof_status
cpprof__split(const struct pprof_profile *p, struct cpprof__split_limits limits,
              bool (*use)(void *ctx, const struct pprof_profile *part,
                          struct cpprof__buffer *plain),
              void *ctx, struct cpprof_error *error)
{
    struct pprof_info info = {.size = sizeof info};
    struct splitter s = {.limits = limits, .use = use, .ctx = ctx};

    pprof_get_info(p, &info);
    s.time_ns = info.time_ns;
    return use_part(&s, p, error);
}
