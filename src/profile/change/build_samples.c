/* SPDX-License-Identifier: MIT */
/*
 * Adding and editing samples. As in build.c, everything is there before the
 * profile is changed: the label set, room for frames and values.
 *
 * Frames of a sample that is replaced stay in `frames`, where nothing refers to
 * them any more; compacting drops them.
 */
#include "own/memory.h"
#include "profile/change/change.h"

#include "base/options.h"
#include "base/status.h"
#include "profile/model/check.h"

#include <string.h>

static enum cpprof_status
make_label(struct pprof_profile *p, const struct pprof_new_label *given,
           struct pprof_label *made, struct cpprof_error *error)
{
    enum cpprof_status status;

    if (!given->key)
        return cpprof__fail(error, CPPROF_INVALID, 0, "a label needs a key");
    memset(made, 0, sizeof *made);
    status = cpprof__build_string(p, given->key, &made->key, error);
    if (given->text) {
        made->kind = PPROF_LABEL_TEXT;
        if (status == CPPROF_OK)
            status = cpprof__build_string(p, given->text, &made->text, error);
        return status;
    }
    made->kind = PPROF_LABEL_NUMBER;
    made->num = given->num;
    if (status == CPPROF_OK)
        status = cpprof__build_string(p, given->unit, &made->unit, error);
    return status;
}

static enum cpprof_status
make_label_set(struct pprof_profile *p, const struct pprof_new_label *given,
               size_t n, uint32_t *set, struct cpprof_error *error)
{
    struct pprof_label *labels;
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    *set = 0;
    if (!n)
        return CPPROF_OK;
    labels = cpprof__calloc(n, sizeof *labels);
    if (!labels)
        return cpprof__fail_nomem(error);
    for (i = 0; i < n && status == CPPROF_OK; i++)
        status = make_label(p, &given[i], &labels[i], error);
    if (status == CPPROF_OK) {
        *set = cpprof__label_sets_add(&p->labels, &p->strings, labels, n);
        if (*set == CPPROF__NO_LABEL_SET)
            status = cpprof__fail_nomem(error);
    }
    cpprof__free(labels);
    return status;
}

static enum cpprof_status
check_sample(const struct pprof_profile *p, const struct pprof_new_sample *s,
             struct cpprof_error *error)
{
    enum cpprof_status status;
    size_t i;

    if (!p->sample_types.n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "a sample needs a sample type");
    if (!s->values)
        return cpprof__fail(error, CPPROF_INVALID, 0, "a sample needs values");
    status =
        cpprof__build_array("location", s->locations, s->n_locations, error);
    if (status == CPPROF_OK)
        status = cpprof__build_array("label", s->labels, s->n_labels, error);
    if (status == CPPROF_OK)
        status = cpprof__build_room("location", s->n_locations, error);
    for (i = 0; i < s->n_locations && status == CPPROF_OK; i++)
        status = cpprof__build_index("location", s->locations[i],
                                     p->locations.n, error);
    return status;
}

/* The sample, with its frames behind all others. */
static enum cpprof_status
make_sample(struct pprof_profile *p, const struct pprof_new_sample *given,
            struct pprof_new_sample *taken, struct cpprof__sample *made,
            struct cpprof_error *error)
{
    enum cpprof_status status;

    *taken = (struct pprof_new_sample){.size = sizeof *taken};
    status =
        cpprof__options(taken, sizeof *taken, given, "pprof_new_sample", error);
    if (status == CPPROF_OK)
        status = check_sample(p, taken, error);
    if (status == CPPROF_OK &&
        !CPPROF__ARRAY_ROOM_FOR(&p->frames, taken->n_locations,
                                &taken->locations))
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK)
        status = make_label_set(p, taken->labels, taken->n_labels,
                                &made->labels, error);
    made->first_frame = p->frames.n;
    made->n_frames = (uint32_t)taken->n_locations;
    return status;
}

static void
take_over(struct pprof_profile *p, size_t index,
          const struct pprof_new_sample *s, const struct cpprof__sample *made)
{
    if (s->n_locations)
        memcpy(p->frames.at + p->frames.n, s->locations,
               s->n_locations * sizeof *s->locations);
    p->frames.n += s->n_locations;
    memmove(cpprof__values(p, index), s->values,
            p->sample_types.n * sizeof *s->values);
    p->samples.at[index] = *made;
}

enum cpprof_status
pprof_add_sample(struct pprof_profile *p, const struct pprof_new_sample *given,
                 size_t *index, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_new_sample s;
    struct cpprof__sample made;
    enum cpprof_status status = make_sample(p, given, &s, &made, error);

    if (status != CPPROF_OK)
        return status;
    if (!CPPROF__ARRAY_ROOM(&p->samples, 1) ||
        !CPPROF__ARRAY_ROOM_FOR(&p->values, p->sample_types.n, &s.values))
        return cpprof__fail_nomem(error);
    p->samples.n++;
    p->values.n += p->sample_types.n;
    take_over(p, p->samples.n - 1, &s, &made);
    if (index)
        *index = p->samples.n - 1;
    return CPPROF_OK;
}

enum cpprof_status
pprof_set_sample(struct pprof_profile *p, size_t index,
                 const struct pprof_new_sample *given,
                 struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_new_sample s;
    struct cpprof__sample made;
    enum cpprof_status status =
        cpprof__build_index("sample", index, p->samples.n, error);

    if (status == CPPROF_OK)
        status = make_sample(p, given, &s, &made, error);
    if (status != CPPROF_OK)
        return status;
    take_over(p, index, &s, &made);
    cpprof__debug_check(p);
    return CPPROF_OK;
}

struct filter {
    bool (*keep)(void *ctx, size_t index);
    void *ctx;
    size_t next; /* index of the sample that is asked for next */
};

static bool
keep_one(void *ctx, struct cpprof__sample *sample)
{
    struct filter *k = ctx;

    (void)sample;
    return k->keep(k->ctx, k->next++);
}

void
pprof_keep_samples(struct pprof_profile *p,
                   bool (*keep)(void *ctx, size_t index), void *ctx)
{
    struct filter k = {.keep = keep, .ctx = ctx};

    if (!p || !keep)
        return;
    cpprof__keep_samples(p, keep_one, &k);
    cpprof__debug_check(p);
}
