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

struct splitter {
    struct cpprof__split_limits limits;
    enum cpprof__split_next (*use)(void *ctx,
                                   const struct cpprof__split_part *part);
    void *ctx;
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
use_halves(struct splitter *s, const struct pprof_profile *p, uint64_t room_ns,
           struct cpprof_error *error);

/* Halves, until they fit. A sample that is too large is left to the server. */
static enum cpprof_status
use_part(struct splitter *s, const struct pprof_profile *p, uint64_t room_ns,
         struct cpprof_error *error)
{
    enum cpprof__split_next next = CPPROF__SPLIT_HALVE;
    struct cpprof__buffer plain = {0};
    size_t n = pprof_sample_count(p);
    enum cpprof_status status = CPPROF_OK;

    if (n <= s->limits.n_samples)
        status = encode(p, &plain, error);
    if (status == CPPROF_OK && n <= s->limits.n_samples &&
        (plain.n <= s->limits.n_bytes || n < 2))
        next = s->use(s->ctx, &(struct cpprof__split_part){p, &plain, room_ns});
    cpprof__buffer_free(&plain);
    s->is_over |= next == CPPROF__SPLIT_END;
    if (status == CPPROF_OK && next == CPPROF__SPLIT_HALVE && n > 1)
        status = use_halves(s, p, room_ns, error);
    return status;
}

static void
set_later(struct pprof_profile *part, uint64_t ns)
{
    struct pprof_info info = {.size = sizeof info};
    int64_t later;

    pprof_get_info(part, &info);
    if (info.time_ns && !__builtin_add_overflow(info.time_ns, ns, &later))
        pprof_set_time(part, later, info.duration_ns);
}

static enum cpprof_status
use_range(struct splitter *s, const struct pprof_profile *p, struct range range,
          uint64_t room_ns, struct cpprof_error *error)
{
    struct pprof_profile *part = NULL;
    enum cpprof_status status = pprof_copy(p, &part, error);

    if (status == CPPROF_OK) {
        cpprof__keep_samples(part, is_in, &range);
        status = make_small(&part, error);
    }
    if (status == CPPROF_OK) {
        set_later(part, range.first ? room_ns : 0);
        status = use_part(s, part, room_ns, error);
    }
    pprof_free(part);
    return status;
}

static enum cpprof_status
use_halves(struct splitter *s, const struct pprof_profile *p, uint64_t room_ns,
           struct cpprof_error *error)
{
    size_t n = pprof_sample_count(p);
    enum cpprof_status status =
        use_range(s, p, (struct range){0, 0, n / 2}, room_ns / 2, error);

    if (status == CPPROF_OK && !s->is_over)
        status =
            use_range(s, p, (struct range){0, n / 2, n}, room_ns / 2, error);
    return status;
}

enum cpprof_status
cpprof__split(const struct pprof_profile *p, struct cpprof__split_limits limits,
              uint64_t room_ns,
              enum cpprof__split_next (*use)(
                  void *ctx, const struct cpprof__split_part *part),
              void *ctx, struct cpprof_error *error)
{
    struct splitter s = {.limits = limits, .use = use, .ctx = ctx};

    return use_part(&s, p, room_ns, error);
}
