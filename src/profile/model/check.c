/* SPDX-License-Identifier: MIT */
/*
 * The invariants of a profile as code. Where the reference's CheckValid knows
 * the same failure, the text is the reference's.
 */
#include "profile/model/check.h"

#include "base/status.h"
#include "own/memory.h"
#include "profile/model/id_map.h"

#include <stdio.h>

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

/* ------------------------------------------------- layout in memory ----
 * Only a defect in our code can break these: the layout of the tables, and the
 * promises of strings.h and labels.h. */

#define BROKEN(what)                                                           \
    cpprof__fail(error, CPPROF_BAD_DATA, 0, "inconsistent profile: " what)

/* A record that owns a part of another table. */
struct part {
    size_t first, n;
};

struct parts {
    const void *records;
    size_t n;
    struct part (*part)(const void *records, size_t i);
    size_t n_table; /* elements of the table */
};

static struct part
frames_of(const void *records, size_t i)
{
    const struct cpprof__sample *samples = records;

    return (struct part){samples[i].first_frame, samples[i].n_frames};
}

static struct part
lines_of(const void *records, size_t i)
{
    const struct pprof_location *locations = records;

    return (struct part){locations[i].first_line, locations[i].n_lines};
}

/* Do the parts follow each other? They do in nearly all profiles. */
static bool
is_in_order(const struct parts *parts)
{
    size_t end = 0, i;

    for (i = 0; i < parts->n; i++) {
        struct part p = parts->part(parts->records, i);

        if (!p.n)
            continue;
        if (p.first < end)
            return false;
        end = p.first + p.n;
    }
    return true;
}

/* Mark a part as taken; false if some of it is taken already. */
static bool
take(uint8_t *taken, struct part p)
{
    size_t i;

    for (i = p.first; i < p.first + p.n; i++) {
        if (taken[i / 8] >> i % 8 & 1)
            return false;
        taken[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return true;
}

static enum cpprof_status
check_parts(const struct parts *parts, const char *what,
            struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    uint8_t *taken;
    size_t i;

    if (is_in_order(parts))
        return CPPROF_OK;
    taken = cpprof__calloc(parts->n_table / 8 + 1, 1);
    if (!taken)
        return cpprof__fail_nomem(error);
    for (i = 0; i < parts->n && status == CPPROF_OK; i++)
        if (!take(taken, parts->part(parts->records, i)))
            status = cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                  "inconsistent profile: %s overlap", what);
    cpprof__free(taken);
    return status;
}

/* Each is terminated, and is the one that a search finds: no
 * two are equal, and the index is whole. */
static enum cpprof_status
check_strings(const struct cpprof__strings *s, struct cpprof_error *error)
{
    size_t i;

    if (!s->table.n || s->table.at[0].n)
        return BROKEN("string 0 is not the empty one");
    for (i = 0; i < s->table.n; i++) {
        const struct cpprof__string *string = &s->table.at[i];

        if (string->text[string->n])
            return BROKEN("string is not terminated");
        if (cpprof__strings_find(s, string->text, string->n) != i)
            return BROKEN("string is not found");
    }
    return CPPROF_OK;
}

/* Texts before numbers, each sorted by key. */
static bool
follows(const struct cpprof__strings *strings, const struct pprof_label *a,
        const struct pprof_label *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return cpprof__strings_compare(strings, a->key, b->key) <= 0;
}

static enum cpprof_status
check_label_set(const struct pprof_profile *p, uint32_t set,
                struct cpprof_error *error)
{
    const struct pprof_label *l;
    size_t n, i;

    if (p->labels.sets.at[set].n > p->labels.labels.n ||
        p->labels.sets.at[set].first >
            p->labels.labels.n - p->labels.sets.at[set].n)
        return BROKEN("label set outside the labels");
    l = cpprof__label_set(&p->labels, set, &n);
    for (i = 0; i < n; i++) {
        if (l[i].kind > PPROF_LABEL_NUMBER)
            return BROKEN("label of no kind");
        if (i && !follows(&p->strings, &l[i - 1], &l[i]))
            return BROKEN("labels are not sorted");
    }
    return CPPROF_OK;
}

static enum cpprof_status
check_label_sets(const struct pprof_profile *p, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (!p->labels.sets.n || p->labels.sets.at[0].n)
        return BROKEN("label set 0 is not the empty one");
    for (i = 0; i < p->labels.sets.n && status == CPPROF_OK; i++)
        status = check_label_set(p, (uint32_t)i, error);
    return status;
}

/* Tables, strings and label sets in memory. All indices are known to be inside
 * of their tables. */
static enum cpprof_status
check_layout(const struct pprof_profile *p, struct cpprof_error *error)
{
    struct parts frames = {p->samples.at, p->samples.n, frames_of, p->frames.n};
    struct parts lines = {p->locations.at, p->locations.n, lines_of,
                          p->lines.n};
    enum cpprof_status status = check_strings(&p->strings, error);

    if (status == CPPROF_OK)
        status = check_parts(&frames, "frames of two samples", error);
    if (status == CPPROF_OK)
        status = check_parts(&lines, "lines of two locations", error);
    if (status == CPPROF_OK)
        status = check_label_sets(p, error);
    return status;
}

enum cpprof_status
pprof_check(const struct pprof_profile *p, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

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
        status = check_layout(p, error);
    return status;
}

#ifdef CPPROF_CHECKED
void
cpprof__debug_check(const struct pprof_profile *p)
{
    struct cpprof_error error;
    enum cpprof_status status = pprof_check(p, &error);

    if (status == CPPROF_OK || status == CPPROF_NOMEM)
        return;
    fprintf(stderr, "cpprof: broken profile: %s\n", error.text);
    abort();
}
#endif
