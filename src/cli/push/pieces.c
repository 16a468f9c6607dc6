/* SPDX-License-Identifier: MIT */
/*
 * Halves a profile until its parts fit. Each part has only the stacks and names
 * of its samples, so a part may be much smaller than its share.
 */
#include "cli/push/pieces.h"

#include "base/buffer.h"
#include "base/gzip.h"
#include "profile/model/model.h"

#include <cpprof/pprof/change.h>

#define LEVEL 1

struct user {
    bool (*use)(void *ctx, const void *data, size_t n);
    void *ctx;
    bool is_over;
};

static int
append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

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

static enum cpprof_status
hand_over(struct cpprof__buffer *plain, struct user *u,
          struct cpprof_error *error)
{
    struct cpprof__buffer packed = {0};
    enum cpprof_status status =
        cpprof__gzip(&packed, plain->data, plain->n, LEVEL, error);

    if (status == CPPROF_OK)
        u->is_over = !u->use(u->ctx, packed.data, packed.n);
    cpprof__buffer_free(&packed);
    return status;
}

static enum cpprof_status
use_range(const struct pprof_profile *p, struct range range, struct user *u,
          struct cpprof_error *error);

/* Halves, until they fit. A sample that is too large is left to the server. */
static enum cpprof_status
use_part(const struct pprof_profile *p, struct user *u,
         struct cpprof_error *error)
{
    struct cpprof__buffer plain = {0};
    const struct cpprof_writer writer = {sizeof writer, append, NULL, &plain};
    size_t n = pprof_sample_count(p);
    bool fits = n <= CPPROF__PIECE_SAMPLES;
    enum cpprof_status status = CPPROF_OK;

    if (fits)
        status = pprof_write(p, &writer, PPROF_FORMAT_PLAIN, NULL, error);
    if (status == CPPROF_OK && fits &&
        (plain.n <= CPPROF__PIECE_BYTES || n < 2)) {
        status = hand_over(&plain, u, error);
    } else if (status == CPPROF_OK) {
        cpprof__buffer_free(&plain);
        status = use_range(p, (struct range){0, 0, n / 2}, u, error);
        if (status == CPPROF_OK && !u->is_over)
            status = use_range(p, (struct range){0, n / 2, n}, u, error);
    }
    cpprof__buffer_free(&plain);
    return status;
}

static enum cpprof_status
use_range(const struct pprof_profile *p, struct range range, struct user *u,
          struct cpprof_error *error)
{
    struct pprof_profile *part = NULL;
    enum cpprof_status status = pprof_copy(p, &part, error);

    if (status == CPPROF_OK) {
        cpprof__keep_samples(part, is_in, &range);
        status = pprof_compact(part, error);
    }
    if (status == CPPROF_OK)
        status = use_part(part, u, error);
    pprof_free(part);
    return status;
}

enum cpprof_status
cpprof__pieces(const struct pprof_profile *p,
               bool (*use)(void *ctx, const void *data, size_t n), void *ctx,
               struct cpprof_error *error)
{
    struct user u = {use, ctx, false};

    return use_part(p, &u, error);
}
