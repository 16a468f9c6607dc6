/* SPDX-License-Identifier: MIT */
/*
 * The maker: builds a profile from parts, where functions, locations and
 * strings that are equal become one.
 *
 * Equality is found by an index over the table that it guards, so there is no
 * second copy of anything. Labels gather in the maker until the sample that
 * they belong to is made.
 *
 * Invariants: every function and location of the profile made so far has a
 * line in its index; after a failure nothing is added
 * any more that would break the invariants of model.h.
 */
#include "profile/model/make.h"

#include <string.h>

void
cpprof__maker_free(struct cpprof__maker *m)
{
    cpprof__index_free(&m->functions);
    cpprof__index_free(&m->locations);
    CPPROF__ARRAY_FREE(&m->labels);
}

uint32_t
cpprof__make_string(struct cpprof__maker *m, const char *text, size_t n)
{
    uint32_t string = cpprof__strings_add(&m->p->strings, text, n);

    if (string != CPPROF__NO_STRING)
        return string;
    m->failed = true;
    return 0;
}

uint32_t
cpprof__make_text(struct cpprof__maker *m, const char *text)
{
    return cpprof__make_string(m, text, strlen(text));
}

/* One more element of a table of the profile, zeroed; NULL and failed when
 * there is no room. */
#define ADD(m, table)                                                          \
    ({                                                                         \
        __typeof__((m)->p->table.at) added_ = NULL;                            \
                                                                               \
        if ((m)->p->table.n < PPROF_NONE)                                      \
            added_ = CPPROF__ARRAY_ADD(&(m)->p->table);                        \
        if (added_)                                                            \
            memset(added_, 0, sizeof *added_);                                 \
        else                                                                   \
            (m)->failed = true;                                                \
        added_;                                                                \
    })

/* The same, with an id. */
#define ADD_WITH_ID(m, table)                                                  \
    ({                                                                         \
        uint64_t id_ = CPPROF__NEXT_ID((m)->p, table);                         \
        __typeof__((m)->p->table.at) numbered_ = id_ ? ADD(m, table) : NULL;   \
                                                                               \
        if (numbered_)                                                         \
            numbered_->id = id_;                                               \
        else                                                                   \
            (m)->failed = true;                                                \
        numbered_;                                                             \
    })

void
cpprof__make_sample_type(struct cpprof__maker *m, const char *type,
                         const char *unit)
{
    struct pprof_value_type *t = ADD(m, sample_types);

    if (!t)
        return;
    t->type = cpprof__make_text(m, type);
    t->unit = cpprof__make_text(m, unit);
}

void
cpprof__make_period(struct cpprof__maker *m, const char *type, const char *unit,
                    int64_t period)
{
    m->p->info.period_type.type = cpprof__make_text(m, type);
    m->p->info.period_type.unit = cpprof__make_text(m, unit);
    m->p->info.period = period;
}

uint32_t
cpprof__make_mapping(struct cpprof__maker *m, uint64_t start, uint64_t limit,
                     uint64_t offset, uint32_t file, uint32_t build_id)
{
    struct pprof_mapping *mapping = ADD_WITH_ID(m, mappings);

    if (!mapping)
        return PPROF_NONE;
    mapping->start = start;
    mapping->limit = limit;
    mapping->offset = offset;
    mapping->file = file;
    mapping->build_id = build_id;
    return (uint32_t)m->p->mappings.n - 1;
}

/* What an index compares: a wanted element and where to look for it. */
struct wanted_function {
    const struct pprof_profile *p;
    uint32_t name, system_name, file;
};

static bool
is_function(void *ctx, uint32_t value)
{
    const struct wanted_function *w = ctx;
    const struct pprof_function *f = &w->p->functions.at[value];

    return f->name == w->name && f->system_name == w->system_name &&
           f->file == w->file;
}

uint32_t
cpprof__make_function(struct cpprof__maker *m, uint32_t name,
                      uint32_t system_name, uint32_t file)
{
    struct wanted_function wanted = {m->p, name, system_name, file};
    uint64_t hash = cpprof__hash_u64(
        cpprof__hash_add(system_name, (uint64_t)name << 32 | file));
    uint32_t found =
        cpprof__index_find(&m->functions, hash, is_function, &wanted);
    struct pprof_function *f;

    if (found != CPPROF__INDEX_NONE)
        return found;
    f = ADD_WITH_ID(m, functions);
    if (!f)
        return PPROF_NONE;
    f->name = name;
    f->system_name = system_name;
    f->file = file;
    found = (uint32_t)m->p->functions.n - 1;
    if (!cpprof__index_add(&m->functions, hash, found))
        m->failed = true;
    return found;
}

struct wanted_location {
    const struct pprof_profile *p;
    uint64_t address;
    int64_t line;
    uint32_t mapping, function;
};

static bool
is_location(void *ctx, uint32_t value)
{
    const struct wanted_location *w = ctx;
    const struct pprof_location *l = &w->p->locations.at[value];
    const struct pprof_line *line = &w->p->lines.at[l->first_line];

    if (l->address != w->address || l->mapping != w->mapping)
        return false;
    return l->n_lines ? line->function == w->function && line->line == w->line
                      : w->function == PPROF_NONE;
}

void
cpprof__make_line(struct cpprof__maker *m, struct pprof_line line)
{
    struct pprof_line *added = m->failed ? NULL : ADD(m, lines);

    if (added)
        *added = line;
}

static uint32_t
add_location(struct cpprof__maker *m, const struct wanted_location *wanted)
{
    struct pprof_location *l = ADD_WITH_ID(m, locations);

    if (!l)
        return PPROF_NONE;
    l->address = wanted->address;
    l->mapping = wanted->mapping;
    l->first_line = m->p->lines.n;
    if (wanted->function != PPROF_NONE) {
        cpprof__make_line(m, (struct pprof_line){.function = wanted->function,
                                                 .line = wanted->line});
        l->n_lines = m->p->lines.n > l->first_line;
    }
    return (uint32_t)m->p->locations.n - 1;
}

uint32_t
cpprof__make_location(struct cpprof__maker *m, uint32_t mapping,
                      uint64_t address, uint32_t function, int64_t line)
{
    struct wanted_location wanted = {m->p, address, line, mapping, function};
    uint64_t hash =
        cpprof__hash_add(address, (uint64_t)function << 32 | mapping);
    uint32_t found;

    hash = cpprof__hash_u64(hash ^ (uint64_t)line);
    found = cpprof__index_find(&m->locations, hash, is_location, &wanted);
    if (found != CPPROF__INDEX_NONE)
        return found;
    found = add_location(m, &wanted);
    if (found != PPROF_NONE && !cpprof__index_add(&m->locations, hash, found))
        m->failed = true;
    return found;
}

static void
add_label(struct cpprof__maker *m, struct pprof_label label)
{
    struct pprof_label *added = CPPROF__ARRAY_ADD(&m->labels);

    if (added)
        *added = label;
    else
        m->failed = true;
}

void
cpprof__make_label(struct cpprof__maker *m, uint32_t key, uint32_t text)
{
    add_label(m, (struct pprof_label){
                     .key = key, .text = text, .kind = PPROF_LABEL_TEXT});
}

void
cpprof__make_number(struct cpprof__maker *m, uint32_t key, int64_t num,
                    uint32_t unit)
{
    add_label(m, (struct pprof_label){.key = key,
                                      .num = num,
                                      .unit = unit,
                                      .kind = PPROF_LABEL_NUMBER});
}

void
cpprof__make_sample(struct cpprof__maker *m, const uint32_t *locations,
                    size_t n, const int64_t *values)
{
    struct pprof_profile *p = m->p;
    size_t n_values = p->sample_types.n;
    uint32_t labels = cpprof__label_sets_add(&p->labels, &p->strings,
                                             m->labels.at, m->labels.n);
    struct cpprof__sample *s;

    m->labels.n = 0;
    if (m->failed || labels == CPPROF__NO_LABEL_SET || n > UINT32_MAX ||
        !CPPROF__ARRAY_ROOM(&p->frames, n) ||
        !CPPROF__ARRAY_ROOM(&p->values, n_values) || !(s = ADD(m, samples))) {
        m->failed = true;
        return;
    }
    s->first_frame = p->frames.n;
    s->n_frames = (uint32_t)n;
    s->labels = labels;
    if (n)
        memcpy(p->frames.at + p->frames.n, locations, n * sizeof *locations);
    if (n_values)
        memcpy(p->values.at + p->values.n, values, n_values * sizeof *values);
    p->frames.n += n;
    p->values.n += n_values;
}
