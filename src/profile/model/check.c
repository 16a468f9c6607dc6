/* SPDX-License-Identifier: MIT */
/*
 * The invariants of a profile as code. Where the reference's CheckValid knows
 * the same failure, the text is the reference's.
 */
#include "profile/model/check.h"
#include "base/status.h"
#include "profile/model/id_map.h"

#define BAD(...)                                                               \
    cpprof__fail(error, CPPROF_BAD_DATA, 0, "malformed profile: " __VA_ARGS__)

/* Every record begins with its id. */
static enum cpprof_status
check_ids(const char *what, const char *id_word, const void *records, size_t n,
          size_t stride, struct cpprof_error *error)
{
    struct cpprof__id_map map;
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!cpprof__id_map_make(&map, records, n, stride))
        status = cpprof__fail_nomem(error);
    for (i = 0; i < n && status == CPPROF_OK; i++) {
        uint64_t id = *(const uint64_t *)((const char *)records + i * stride);

        if (id == 0)
            status = BAD("found %s with reserved %s=0", what, id_word);
        else if (cpprof__id_map_get(&map, id) != i)
            status = BAD("multiple %ss with same id: %llu", what,
                         (unsigned long long)id);
    }
    cpprof__id_map_free(&map);
    return status;
}

static enum cpprof_status
check_location(const struct pprof_profile *p, const struct pprof_location *l,
               struct cpprof_error *error)
{
    size_t i;

    if (l->mapping != PPROF_NONE && l->mapping >= p->mappings.n)
        return BAD("location id: %llu has an inconsistent mapping",
                   (unsigned long long)l->id);
    if (l->n_lines > p->lines.n || l->first_line > p->lines.n - l->n_lines)
        return BAD("location id: %llu has lines outside their table",
                   (unsigned long long)l->id);
    for (i = 0; i < l->n_lines; i++)
        if (p->lines.at[l->first_line + i].function >= p->functions.n)
            return BAD("location id: %llu has a line with nil function",
                       (unsigned long long)l->id);
    return CPPROF_OK;
}

enum cpprof_status
cpprof__check_tables(const struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status;
    size_t i;

    status = check_ids("mapping", "ID", p->mappings.at, p->mappings.n,
                       sizeof *p->mappings.at, error);
    if (status == CPPROF_OK)
        status = check_ids("function", "ID", p->functions.at, p->functions.n,
                           sizeof *p->functions.at, error);
    if (status == CPPROF_OK)
        status = check_ids("location", "id", p->locations.at, p->locations.n,
                           sizeof *p->locations.at, error);
    for (i = 0; i < p->locations.n && status == CPPROF_OK; i++)
        status = check_location(p, &p->locations.at[i], error);
    return status;
}

static enum cpprof_status
check_sample(const struct pprof_profile *p, const struct cpprof__sample *s,
             struct cpprof_error *error)
{
    size_t i;

    if (s->n_frames > p->frames.n || s->first_frame > p->frames.n - s->n_frames)
        return BAD("sample has frames outside their table");
    if (s->labels >= p->labels.sets.n)
        return BAD("sample has no such label set");
    for (i = 0; i < s->n_frames; i++)
        if (p->frames.at[s->first_frame + i] >= p->locations.n)
            return BAD("sample has nil location");
    return CPPROF_OK;
}

static enum cpprof_status
check_samples(const struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!p->sample_types.n && p->samples.n)
        return BAD("missing sample type information");
    if (p->values.n != p->samples.n * p->sample_types.n)
        return BAD("mismatch: sample has %zu values vs. %zu types",
                   p->samples.n ? p->values.n / p->samples.n : p->values.n,
                   p->sample_types.n);
    for (i = 0; i < p->samples.n && status == CPPROF_OK; i++)
        status = check_sample(p, &p->samples.at[i], error);
    return status;
}

static enum cpprof_status
check_labels(const struct pprof_profile *p, struct cpprof_error *error)
{
    size_t n = p->strings.table.n, i;

    for (i = 0; i < p->labels.labels.n; i++) {
        const struct pprof_label *l = &p->labels.labels.at[i];

        if (l->key >= n || l->text >= n || l->unit >= n)
            return BAD("label has no such string");
    }
    return CPPROF_OK;
}

static enum cpprof_status
check_head(const struct pprof_profile *p, struct cpprof_error *error)
{
    const struct pprof_info *info = &p->info;
    size_t n = p->strings.table.n, i;

    if (info->period_type.type >= n || info->period_type.unit >= n ||
        info->default_sample_type >= n || info->drop_frames >= n ||
        info->keep_frames >= n || info->doc_url >= n)
        return BAD("profile has no such string");
    for (i = 0; i < p->sample_types.n; i++)
        if (p->sample_types.at[i].type >= n || p->sample_types.at[i].unit >= n)
            return BAD("sample type has no such string");
    for (i = 0; i < p->comments.n; i++)
        if (p->comments.at[i] >= n)
            return BAD("comment is no such string");
    return CPPROF_OK;
}

static enum cpprof_status
check_names(const struct pprof_profile *p, struct cpprof_error *error)
{
    size_t n = p->strings.table.n, i;

    for (i = 0; i < p->mappings.n; i++)
        if (p->mappings.at[i].file >= n || p->mappings.at[i].build_id >= n)
            return BAD("mapping has no such string");
    for (i = 0; i < p->functions.n; i++)
        if (p->functions.at[i].name >= n ||
            p->functions.at[i].system_name >= n || p->functions.at[i].file >= n)
            return BAD("function has no such string");
    return CPPROF_OK;
}

enum cpprof_status
pprof_check(const struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status = check_samples(p, error);

    if (status == CPPROF_OK)
        status = check_labels(p, error);
    if (status == CPPROF_OK)
        status = check_head(p, error);
    if (status == CPPROF_OK)
        status = check_names(p, error);
    if (status == CPPROF_OK)
        status = cpprof__check_tables(p, error);
    if (status == CPPROF_OK)
        status = cpprof__check_layout(p, error);
    return status;
}
