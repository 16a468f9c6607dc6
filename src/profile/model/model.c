/* SPDX-License-Identifier: MIT */
/*
 * A profile as a block of tables: making and freeing it, views of it for the
 * public API, and the edits that need nothing but the tables themselves.
 *
 * What a caller gets is a pointer into a table. It stays valid until the
 * profile changes.
 */
#include "profile/model/model.h"

#include "base/status.h"
#include "own/memory.h"
#include "profile/model/check.h"

#include <string.h>

struct pprof_profile *
cpprof__pprof_make(void)
{
    struct pprof_profile *p = cpprof__calloc(1, sizeof *p);

    if (p && cpprof__strings_begin(&p->strings) &&
        cpprof__label_sets_begin(&p->labels))
        return p;
    pprof_free(p);
    return NULL;
}

void
pprof_free(struct pprof_profile *p)
{
    if (!p)
        return;
    cpprof__strings_free(&p->strings);
    cpprof__label_sets_free(&p->labels);
    CPPROF__ARRAY_FREE(&p->sample_types);
    CPPROF__ARRAY_FREE(&p->mappings);
    CPPROF__ARRAY_FREE(&p->locations);
    CPPROF__ARRAY_FREE(&p->lines);
    CPPROF__ARRAY_FREE(&p->functions);
    CPPROF__ARRAY_FREE(&p->comments);
    CPPROF__ARRAY_FREE(&p->samples);
    CPPROF__ARRAY_FREE(&p->values);
    CPPROF__ARRAY_FREE(&p->frames);
    cpprof__free(p);
}

uint64_t
cpprof__next_id(struct cpprof__ids *ids, const void *records, size_t n,
                size_t stride)
{
    if (ids->n > n)
        *ids = (struct cpprof__ids){0};
    for (; ids->n < n; ids->n++) {
        uint64_t id =
            *(const uint64_t *)((const char *)records + ids->n * stride);

        if (id > ids->max && id != UINT64_MAX)
            ids->max = id;
    }
    return ids->max + 1 == UINT64_MAX ? 0 : ids->max + 1;
}

/* As much of a view as the caller's struct has room for, which begins with its
 * size; what it has more is zero. */
static void
give_view(void *given, const void *view, size_t n_view)
{
    size_t n;

    memcpy(&n, given, sizeof n);
    if (n > n_view)
        memset((char *)given + n_view, 0, n - n_view);
    if (n > sizeof n)
        memcpy((char *)given + sizeof n, (const char *)view + sizeof n,
               (n < n_view ? n : n_view) - sizeof n);
}

void
pprof_get_info(const struct pprof_profile *p, struct pprof_info *info)
{
    if (p && info)
        give_view(info, &p->info, sizeof p->info);
}

const char *
pprof_text(const struct pprof_profile *p, pprof_string string, size_t *n_bytes)
{
    bool is_there = p && string < p->strings.table.n;

    if (n_bytes)
        *n_bytes = is_there ? cpprof__strings_n(&p->strings, string) : 0;
    return is_there ? cpprof__strings_text(&p->strings, string) : "";
}

#define COUNT(name, n_name)                                                    \
    size_t pprof_##name##_count(const struct pprof_profile *p)                 \
    {                                                                          \
        return p ? n_name : 0;                                                 \
    }
COUNT(sample_type, p->sample_types.n)
COUNT(sample, p->samples.n)
COUNT(mapping, p->mappings.n)
COUNT(location, p->locations.n)
COUNT(line, p->lines.n)
COUNT(function, p->functions.n)
COUNT(comment, p->comments.n)
COUNT(string, p->strings.table.n)
#undef COUNT

#define TABLE(name, type)                                                      \
    const type *pprof_##name(const struct pprof_profile *p)                    \
    {                                                                          \
        return p ? p->name.at : NULL;                                          \
    }
TABLE(sample_types, struct pprof_value_type)
TABLE(mappings, struct pprof_mapping)
TABLE(locations, struct pprof_location)
TABLE(lines, struct pprof_line)
TABLE(functions, struct pprof_function)
TABLE(comments, pprof_string)
#undef TABLE

void
pprof_get_sample(const struct pprof_profile *p, size_t index,
                 struct pprof_sample *sample)
{
    struct pprof_sample view = {0};

    if (!sample)
        return;
    if (p && index < p->samples.n) {
        const struct cpprof__sample *s = &p->samples.at[index];

        view.values = cpprof__values(p, index);
        view.locations = p->frames.at + s->first_frame;
        view.n_locations = s->n_frames;
        view.labels = cpprof__label_set(&p->labels, s->labels, &view.n_labels);
    }
    give_view(sample, &view, sizeof view);
}

void
cpprof__keep_samples(struct pprof_profile *p,
                     bool (*keep)(void *ctx, struct cpprof__sample *sample),
                     void *ctx)
{
    size_t n_values = p->sample_types.n, kept = 0, i;

    for (i = 0; i < p->samples.n; i++) {
        struct cpprof__sample sample = p->samples.at[i];

        if (!keep(ctx, &sample))
            continue;
        p->samples.at[kept] = sample;
        if (kept != i)
            memcpy(cpprof__values(p, kept), cpprof__values(p, i),
                   n_values * sizeof *p->values.at);
        kept++;
    }
    p->samples.n = kept;
    p->values.n = kept * n_values;
}

static struct pprof_mapping *
first_mapping(struct pprof_profile *p)
{
    struct pprof_mapping *m;
    size_t i;

    if (p->mappings.n)
        return &p->mappings.at[0];
    m = CPPROF__ARRAY_ADD(&p->mappings);
    if (!m)
        return NULL;
    memset(m, 0, sizeof *m);
    m->id = 1;
    for (i = 0; i < p->locations.n; i++)
        p->locations.at[i].mapping = 0;
    return m;
}

enum cpprof_status
pprof_set_binary(struct pprof_profile *p, const char *file,
                 const char *build_id, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    uint32_t file_id = cpprof__strings_add_text(&p->strings, file ? file : "");
    uint32_t id_id =
        cpprof__strings_add_text(&p->strings, build_id ? build_id : "");
    struct pprof_mapping *m = first_mapping(p);

    if (!m || file_id == CPPROF__NO_STRING || id_id == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    if (file)
        m->file = file_id;
    if (build_id)
        m->build_id = id_id;
    cpprof__debug_check(p);
    return CPPROF_OK;
}

enum cpprof_status
pprof_add_comment(struct pprof_profile *p, const char *text,
                  struct cpprof_error *error)
{
    CPPROF__NEED(error, p && text);

    uint32_t string = cpprof__strings_add_text(&p->strings, text);

    if (string == CPPROF__NO_STRING || !CPPROF__ARRAY_ROOM(&p->comments, 1))
        return cpprof__fail_nomem(error);
    p->comments.at[p->comments.n++] = string;
    cpprof__debug_check(p);
    return CPPROF_OK;
}
