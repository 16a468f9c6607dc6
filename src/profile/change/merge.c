/* SPDX-License-Identifier: MIT */
/*
 * Merges several profiles into one. Sources are added one after the other, and
 * each may be freed once it was added, because the merger keeps only the
 * result.
 *
 * What is the same becomes one:
 *
 * - mappings with the same build id, or file, and the same size and offset, at
 *   any address;
 * - functions that are equal in all but the id;
 * - locations with the same address within the same mapping, and the same lines
 *   and functions;
 * - samples with the same locations and labels: their values are added up.
 *
 * Only what some sample refers to gets into the result. The exception is the
 * first mapping, which is the program. Source: profile/merge.go.
 */
#include "own/memory.h"
#include "profile/change/change.h"

#include "base/status.h"
#include "profile/model/check.h"
#include "profile/model/stand_ins.h"

#include <string.h>

/* For an element of the source: it was not needed yet, or memory ran out. The
 * same number as CPPROF__NO_STRING and CPPROF__NO_LABEL_SET. */
#define NOWHERE UINT32_MAX

/* A mapping of the result, and how far the source's addresses move. */
struct placed_mapping {
    uint32_t at;
    uint64_t shift;
};

struct pprof_merger {
    struct pprof_profile *out;
    size_t n_sources;
    struct cpprof__index mappings, functions, locations, samples, comments;

    /* Of the source being added. */
    const struct pprof_profile *p;
    uint32_t *strings, *sets, *function_at, *location_at;
    struct placed_mapping *mapping_at;
};

/* ----------------------------------------------------------- strings ---- */

/* The result's number of a source's string, or CPPROF__NO_STRING. */
static uint32_t
merged_string(struct pprof_merger *m, uint32_t string)
{
    const struct cpprof__strings *from = &m->p->strings;

    if (m->strings[string] == NOWHERE)
        m->strings[string] = cpprof__strings_add(
            &m->out->strings, cpprof__strings_text(from, string),
            cpprof__strings_n(from, string));
    return m->strings[string];
}

static uint32_t
merged_labels(struct pprof_merger *m, uint32_t set)
{
    struct pprof_label few[16], *labels = few;
    size_t n, i;
    const struct pprof_label *from = cpprof__label_set(&m->p->labels, set, &n);
    bool ok = true;

    if (m->sets[set] != NOWHERE)
        return m->sets[set];
    if (n > 16)
        labels = cpprof__malloc(n * sizeof *labels);
    for (i = 0; labels && ok && i < n; i++) {
        labels[i] = from[i];
        labels[i].key = merged_string(m, from[i].key);
        labels[i].text = merged_string(m, from[i].text);
        labels[i].unit = merged_string(m, from[i].unit);
        ok = labels[i].key != CPPROF__NO_STRING &&
             labels[i].text != CPPROF__NO_STRING &&
             labels[i].unit != CPPROF__NO_STRING;
    }
    if (labels && ok)
        m->sets[set] = cpprof__label_sets_add(&m->out->labels, &m->out->strings,
                                              labels, n);
    if (labels != few)
        cpprof__free(labels);
    return m->sets[set];
}

/* ---------------------------------------------------------- mappings ---- */

/* Page size does not count: sizes are rounded up to it. */
static uint64_t
rounded_size(const struct pprof_mapping *m)
{
    return (m->limit - m->start + 0xfff) & ~(uint64_t)0xfff;
}

static uint32_t
name_of(const struct pprof_mapping *m)
{
    return m->build_id ? m->build_id : m->file;
}

struct wanted {
    const struct pprof_profile *out;
    const void *record;
};

static bool
is_mapping(void *ctx, uint32_t at)
{
    const struct wanted *w = ctx;
    const struct pprof_mapping *a = &w->out->mappings.at[at];
    const struct pprof_mapping *b = w->record;

    return rounded_size(a) == rounded_size(b) && a->offset == b->offset &&
           name_of(a) == name_of(b);
}

/* The result's mapping that equals this one, added if it is new. */
static uint32_t
intern_mapping(struct pprof_merger *m, const struct pprof_mapping *mapping)
{
    struct wanted wanted = {m->out, mapping};
    uint64_t hash = cpprof__hash_add(rounded_size(mapping), mapping->offset);
    uint32_t at;

    hash = cpprof__hash_u64(hash ^ name_of(mapping));
    at = cpprof__index_find(&m->mappings, hash, is_mapping, &wanted);
    if (at != CPPROF__INDEX_NONE)
        return at;
    at = (uint32_t)m->out->mappings.n;
    if (at == NOWHERE || !CPPROF__ARRAY_ROOM(&m->out->mappings, 1) ||
        !cpprof__index_add(&m->mappings, hash, at))
        return NOWHERE;
    m->out->mappings.at[m->out->mappings.n++] = *mapping;
    m->out->mappings.at[at].id = at + 1;
    return at;
}

static bool
merged_mapping(struct pprof_merger *m, uint32_t mapping)
{
    struct placed_mapping *placed = &m->mapping_at[mapping];
    struct pprof_mapping copy = m->p->mappings.at[mapping];

    if (placed->at != NOWHERE)
        return true;
    copy.file = merged_string(m, copy.file);
    copy.build_id = merged_string(m, copy.build_id);
    if (copy.file == CPPROF__NO_STRING || copy.build_id == CPPROF__NO_STRING)
        return false;
    placed->at = intern_mapping(m, &copy);
    if (placed->at == NOWHERE)
        return false;
    placed->shift = m->out->mappings.at[placed->at].start - copy.start;
    return true;
}

/* --------------------------------------------------------- functions ---- */

static bool
is_function(void *ctx, uint32_t at)
{
    const struct wanted *w = ctx;
    const struct pprof_function *a = &w->out->functions.at[at];
    const struct pprof_function *b = w->record;

    return a->start_line == b->start_line && a->name == b->name &&
           a->system_name == b->system_name && a->file == b->file;
}

static uint32_t
intern_function(struct pprof_merger *m, const struct pprof_function *f)
{
    struct wanted wanted = {m->out, f};
    uint64_t hash = cpprof__hash_add((uint64_t)f->start_line,
                                     (uint64_t)f->name << 32 | f->system_name);
    uint32_t at;

    hash = cpprof__hash_u64(hash ^ f->file);
    at = cpprof__index_find(&m->functions, hash, is_function, &wanted);
    if (at != CPPROF__INDEX_NONE)
        return at;
    at = (uint32_t)m->out->functions.n;
    if (at == NOWHERE || !CPPROF__ARRAY_ROOM(&m->out->functions, 1) ||
        !cpprof__index_add(&m->functions, hash, at))
        return NOWHERE;
    m->out->functions.at[m->out->functions.n++] = *f;
    m->out->functions.at[at].id = (uint64_t)at + 1;
    return at;
}

static uint32_t
merged_function(struct pprof_merger *m, uint32_t function)
{
    struct pprof_function copy = m->p->functions.at[function];

    if (m->function_at[function] != NOWHERE)
        return m->function_at[function];
    copy.name = merged_string(m, copy.name);
    copy.system_name = merged_string(m, copy.system_name);
    copy.file = merged_string(m, copy.file);
    if (copy.name == CPPROF__NO_STRING ||
        copy.system_name == CPPROF__NO_STRING || copy.file == CPPROF__NO_STRING)
        return NOWHERE;
    return m->function_at[function] = intern_function(m, &copy);
}

/* --------------------------------------------------------- locations ---- */

/* Both are locations of the result; addresses in a mapping have been moved
 * into that of the result and compare as they are. */
static bool
same_location(const struct pprof_profile *out, const struct pprof_location *a,
              const struct pprof_location *b)
{
    size_t i;

    if (a->address != b->address || a->mapping != b->mapping ||
        a->n_lines != b->n_lines || a->flags != b->flags)
        return false;
    for (i = 0; i < a->n_lines; i++) {
        const struct pprof_line *x = &out->lines.at[a->first_line + i];
        const struct pprof_line *y = &out->lines.at[b->first_line + i];

        if (x->function != y->function || x->line != y->line ||
            x->column != y->column)
            return false;
    }
    return true;
}

static bool
is_location(void *ctx, uint32_t at)
{
    const struct wanted *w = ctx;

    return same_location(w->out, &w->out->locations.at[at], w->record);
}

static uint64_t
hash_location(const struct pprof_profile *out, const struct pprof_location *l)
{
    uint64_t hash = cpprof__hash_add(l->mapping, l->address);
    size_t i;

    for (i = 0; i < l->n_lines; i++) {
        const struct pprof_line *x = &out->lines.at[l->first_line + i];

        hash = cpprof__hash_add(hash ^ x->function, (uint64_t)x->line);
        hash = cpprof__hash_add(hash, (uint64_t)x->column);
    }
    return cpprof__hash_u64(hash);
}

/* Copy the lines of a source's location behind those of the result. */
static bool
copy_lines(struct pprof_merger *m, const struct pprof_location *l)
{
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&m->out->lines, l->n_lines))
        return false;
    for (i = 0; i < l->n_lines; i++) {
        struct pprof_line line = m->p->lines.at[l->first_line + i];

        line.function = merged_function(m, line.function);
        if (line.function == NOWHERE)
            return false;
        m->out->lines.at[m->out->lines.n + i] = line;
    }
    return true;
}

/* The lines of l are the last ones of the result. They stay if the location is
 * new. */
static uint32_t
intern_location(struct pprof_merger *m, const struct pprof_location *l)
{
    struct wanted wanted = {m->out, l};
    uint64_t hash = hash_location(m->out, l);
    uint32_t at = cpprof__index_find(&m->locations, hash, is_location, &wanted);

    if (at != CPPROF__INDEX_NONE)
        return at;
    at = (uint32_t)m->out->locations.n;
    if (at == NOWHERE || !CPPROF__ARRAY_ROOM(&m->out->locations, 1) ||
        !cpprof__index_add(&m->locations, hash, at))
        return NOWHERE;
    m->out->lines.n += l->n_lines;
    m->out->locations.at[m->out->locations.n++] = *l;
    m->out->locations.at[at].id = (uint64_t)at + 1;
    return at;
}

static uint32_t
merged_location(struct pprof_merger *m, uint32_t location)
{
    struct pprof_location copy = m->p->locations.at[location];

    if (m->location_at[location] != NOWHERE)
        return m->location_at[location];
    if (copy.mapping != PPROF_NONE) {
        const struct placed_mapping *placed = &m->mapping_at[copy.mapping];

        if (!merged_mapping(m, copy.mapping))
            return NOWHERE;
        copy.mapping = placed->at;
        copy.address += placed->shift;
    }
    if (!copy_lines(m, &copy))
        return NOWHERE;
    copy.first_line = m->out->lines.n;
    return m->location_at[location] = intern_location(m, &copy);
}

/* ----------------------------------------------------------- samples ---- */

static bool
is_sample(void *ctx, uint32_t at)
{
    const struct wanted *w = ctx;
    const struct cpprof__sample *a = &w->out->samples.at[at], *b = w->record;
    const uint32_t *frames = w->out->frames.at;

    return a->labels == b->labels && a->n_frames == b->n_frames &&
           (!a->n_frames ||
            memcmp(frames + a->first_frame, frames + b->first_frame,
                   a->n_frames * sizeof *frames) == 0);
}

static uint64_t
hash_sample(const struct pprof_profile *out, const struct cpprof__sample *s)
{
    uint64_t hash = cpprof__hash_u64(s->labels);

    if (!s->n_frames)
        return hash;
    return cpprof__hash_bytes(out->frames.at + s->first_frame,
                              s->n_frames * sizeof *out->frames.at, hash);
}

/* The frames of s lie behind those of the result; if it is new they become
 * the last of them. Its values are then 0. */
static uint32_t
intern_sample(struct pprof_merger *m, const struct cpprof__sample *s,
              uint64_t hash)
{
    struct pprof_profile *out = m->out;
    struct wanted wanted = {out, s};
    size_t n_values = out->sample_types.n;
    uint32_t at = cpprof__index_find(&m->samples, hash, is_sample, &wanted);

    if (at != CPPROF__INDEX_NONE)
        return at;
    at = (uint32_t)out->samples.n;
    if (at == NOWHERE || !CPPROF__ARRAY_ROOM(&out->samples, 1) ||
        !CPPROF__ARRAY_ROOM(&out->values, n_values) ||
        !cpprof__index_add(&m->samples, hash, at))
        return NOWHERE;
    memset(out->values.at + out->values.n, 0,
           n_values * sizeof *out->values.at);
    out->values.n += n_values;
    out->samples.at[out->samples.n] = *s;
    out->samples.at[out->samples.n++].first_frame = out->frames.n;
    if (s->n_frames && s->first_frame != out->frames.n)
        memmove(out->frames.at + out->frames.n, out->frames.at + s->first_frame,
                s->n_frames * sizeof *out->frames.at);
    out->frames.n += s->n_frames;
    return at;
}

/*
 * The table of samples is too large for any cache. So several samples are
 * prepared and their slots prefetched before the first one is looked up.
 */
#define BATCH 32

struct batch {
    struct ready {
        struct cpprof__sample sample; /* of the result */
        const int64_t *values;
        uint64_t hash;
    } ready[BATCH];
    size_t n;
    size_t frames_end; /* behind the frames of all of them */
};

static bool
make_ready(struct pprof_merger *m, size_t sample, struct batch *batch)
{
    struct pprof_profile *out = m->out;
    struct ready *ready = &batch->ready[batch->n++];
    struct cpprof__sample copy = m->p->samples.at[sample];
    const uint32_t *from = m->p->frames.at + copy.first_frame;
    uint32_t i;

    copy.labels = merged_labels(m, copy.labels);
    if (copy.labels == NOWHERE ||
        !CPPROF__ARRAY_ROOM(&out->frames,
                            batch->frames_end - out->frames.n + copy.n_frames))
        return false;
    copy.first_frame = batch->frames_end;
    for (i = 0; i < copy.n_frames; i++) {
        uint32_t at = merged_location(m, from[i]);

        if (at == NOWHERE)
            return false;
        out->frames.at[copy.first_frame + i] = at;
    }
    batch->frames_end += copy.n_frames;
    ready->sample = copy;
    ready->values = cpprof__values(m->p, sample);
    ready->hash = hash_sample(out, &copy);
    cpprof__index_prefetch(&m->samples, ready->hash);
    return true;
}

/* Add what is ready to the result. */
static bool
merge_batch(struct pprof_merger *m, struct batch *batch)
{
    size_t i, j;

    for (i = 0; i < batch->n; i++) {
        struct ready *ready = &batch->ready[i];
        uint32_t at = intern_sample(m, &ready->sample, ready->hash);
        int64_t *sums;

        if (at == NOWHERE)
            return false;
        sums = cpprof__values(m->out, at);
        for (j = 0; j < m->out->sample_types.n; j++)
            sums[j] = (int64_t)((uint64_t)sums[j] + (uint64_t)ready->values[j]);
    }
    batch->n = 0;
    batch->frames_end = m->out->frames.n;
    return true;
}

static bool
is_zero(const struct pprof_profile *p, size_t sample)
{
    const int64_t *values = cpprof__values(p, sample);
    size_t i;

    for (i = 0; i < p->sample_types.n; i++)
        if (values[i])
            return false;
    return true;
}

/* ------------------------------------------------------------- heads ---- */

static bool
copy_types(struct pprof_merger *m)
{
    const struct pprof_profile *p = m->p;
    struct pprof_profile *out = m->out;
    size_t i;

    if (!CPPROF__ARRAY_ROOM(&out->sample_types, p->sample_types.n))
        return false;
    for (i = 0; i < p->sample_types.n; i++) {
        struct pprof_value_type t = p->sample_types.at[i];

        t.type = merged_string(m, t.type);
        t.unit = merged_string(m, t.unit);
        if (t.type == CPPROF__NO_STRING || t.unit == CPPROF__NO_STRING)
            return false;
        out->sample_types.at[out->sample_types.n++] = t;
    }
    return true;
}

/* What only the first source decides. */
static bool
begin_head(struct pprof_merger *m)
{
    struct pprof_info *head = &m->out->info;

    head->period_type.type = merged_string(m, m->p->info.period_type.type);
    head->period_type.unit = merged_string(m, m->p->info.period_type.unit);
    head->drop_frames = merged_string(m, m->p->info.drop_frames);
    head->keep_frames = merged_string(m, m->p->info.keep_frames);
    return head->period_type.type != CPPROF__NO_STRING &&
           head->period_type.unit != CPPROF__NO_STRING &&
           head->drop_frames != CPPROF__NO_STRING &&
           head->keep_frames != CPPROF__NO_STRING && copy_types(m);
}

static bool
is_comment(void *ctx, uint32_t at)
{
    const struct wanted *w = ctx;

    return w->out->comments.at[at] == *(const uint32_t *)w->record;
}

/* Each comment once. */
static bool
add_comments(struct pprof_merger *m)
{
    struct pprof_profile *out = m->out;
    size_t i;

    for (i = 0; i < m->p->comments.n; i++) {
        uint32_t string = merged_string(m, m->p->comments.at[i]);
        struct wanted wanted = {out, &string};
        uint64_t hash = cpprof__hash_u64(string);

        if (string == CPPROF__NO_STRING)
            return false;
        if (cpprof__index_find(&m->comments, hash, is_comment, &wanted) !=
            CPPROF__INDEX_NONE)
            continue;
        if (!CPPROF__ARRAY_ROOM(&out->comments, 1) ||
            !cpprof__index_add(&m->comments, hash, (uint32_t)out->comments.n))
            return false;
        out->comments.at[out->comments.n++] = string;
    }
    return true;
}

/* The earliest time, the whole duration, the longest period; the first default
 * type and doc URL that there are. */
static bool
add_head(struct pprof_merger *m)
{
    struct pprof_info *out = &m->out->info;
    const struct pprof_info *in = &m->p->info;

    if (!out->time_ns || in->time_ns < out->time_ns)
        out->time_ns = in->time_ns;
    out->duration_ns =
        (int64_t)((uint64_t)out->duration_ns + (uint64_t)in->duration_ns);
    if (!out->period || out->period < in->period)
        out->period = in->period;
    if (!out->default_sample_type)
        out->default_sample_type = merged_string(m, in->default_sample_type);
    if (!out->doc_url)
        out->doc_url = merged_string(m, in->doc_url);
    return out->default_sample_type != CPPROF__NO_STRING &&
           out->doc_url != CPPROF__NO_STRING && add_comments(m);
}

/* ------------------------------------------------------------ merger ---- */

enum cpprof_status
pprof_merger_new(struct pprof_merger **merger, struct cpprof_error *error)
{
    CPPROF__NEED(error, merger);

    struct pprof_merger *m = cpprof__calloc(1, sizeof *m);

    if (m)
        m->out = cpprof__pprof_make();
    if (!m || !m->out) {
        cpprof__free(m);
        return cpprof__fail_nomem(error);
    }
    *merger = m;
    return CPPROF_OK;
}

void
pprof_merger_free(struct pprof_merger *m)
{
    if (!m)
        return;
    pprof_free(m->out);
    cpprof__index_free(&m->mappings);
    cpprof__index_free(&m->functions);
    cpprof__index_free(&m->locations);
    cpprof__index_free(&m->samples);
    cpprof__index_free(&m->comments);
    cpprof__free(m);
}

static uint32_t *
nowhere(size_t n)
{
    uint32_t *at = cpprof__malloc((n + 1) * sizeof *at);

    if (at)
        memset(at, 0xff, n * sizeof *at);
    return at;
}

static bool
begin_source(struct pprof_merger *m, const struct pprof_profile *p)
{
    size_t i;

    m->p = p;
    m->strings = nowhere(p->strings.table.n);
    m->sets = nowhere(p->labels.sets.n);
    m->function_at = nowhere(p->functions.n);
    m->location_at = nowhere(p->locations.n);
    m->mapping_at = cpprof__malloc((p->mappings.n + 1) * sizeof *m->mapping_at);
    if (!m->strings || !m->sets || !m->function_at || !m->location_at ||
        !m->mapping_at)
        return false;
    for (i = 0; i < p->mappings.n; i++)
        m->mapping_at[i] = (struct placed_mapping){NOWHERE, 0};
    return true;
}

static void
end_source(struct pprof_merger *m)
{
    cpprof__free(m->strings);
    cpprof__free(m->sets);
    cpprof__free(m->function_at);
    cpprof__free(m->location_at);
    cpprof__free(m->mapping_at);
    m->strings = m->sets = m->function_at = m->location_at = NULL;
    m->mapping_at = NULL;
    m->p = NULL;
}

static bool
add_samples(struct pprof_merger *m)
{
    struct batch batch = {.frames_end = m->out->frames.n};
    size_t i;

    for (i = 0; i < m->p->samples.n; i++) {
        if (!is_zero(m->p, i) && !make_ready(m, i, &batch))
            return false;
        if (batch.n == BATCH && !merge_batch(m, &batch))
            return false;
    }
    return merge_batch(m, &batch);
}

static bool
add_source(struct pprof_merger *m)
{

    if ((!m->n_sources && !begin_head(m)) || !add_head(m))
        return false;
    if (!m->out->mappings.n && m->p->mappings.n && !merged_mapping(m, 0))
        return false;
    return add_samples(m);
}

enum cpprof_status
pprof_merger_add(struct pprof_merger *m, struct pprof_profile *p,
                 struct cpprof_error *error)
{
    CPPROF__NEED(error, m && p);

    enum cpprof_status status = CPPROF_OK;

    if (!m->out)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "merger was finished before");
    if (m->n_sources)
        status = cpprof__make_compatible(m->out, p, error);
    cpprof__debug_check(p);
    if (status != CPPROF_OK)
        return status;
    if (!begin_source(m, p) || !add_source(m))
        status = cpprof__fail_nomem(error);
    end_source(m);
    m->n_sources++;
    return status;
}

static bool
any_zero(const struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->samples.n; i++)
        if (is_zero(p, i))
            return true;
    return false;
}

enum cpprof_status
pprof_merger_finish(struct pprof_merger *m, struct pprof_profile **profile,
                    struct cpprof_error *error)
{
    CPPROF__NEED(error, m && profile);

    struct pprof_merger *again = NULL;
    enum cpprof_status status;

    if (!m->n_sources)
        return cpprof__fail(error, CPPROF_INVALID, 0, "no profiles to merge");
    if (!m->out)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "merger was finished before");
    if (!any_zero(m->out)) {
        if (!cpprof__stand_ins_part(m->out))
            return cpprof__fail_nomem(error);
        cpprof__debug_check(m->out);
        *profile = m->out;
        m->out = NULL;
        return CPPROF_OK;
    }
    /* Drop samples that cancelled each other out, and what only they refer to.
     */
    status = pprof_merger_new(&again, error);
    if (status != CPPROF_OK)
        return status;
    status = pprof_merger_add(again, m->out, error);
    if (status == CPPROF_OK)
        status = pprof_merger_finish(again, profile, error);
    pprof_merger_free(again);
    return status;
}
