/* SPDX-License-Identifier: MIT */
/*
 * Making a profile record by record: what there is once, and the tables.
 *
 * The idea: every call first gets all that it needs (strings, room in the
 * tables), then changes the profile, which cannot fail any more. So a call
 * that fails leaves the profile as it was.
 *
 * What a caller gives may be the profile's own: texts do not move, and arrays
 * are looked for again when room was made for more.
 */
#include "profile/change/change.h"

#include "base/options.h"
#include "base/status.h"
#include "profile/model/check.h"

#include <string.h>

#define ALL_HAS                                                                \
    (PPROF_HAS_FUNCTIONS | PPROF_HAS_FILENAMES | PPROF_HAS_LINE_NUMBERS |      \
     PPROF_HAS_INLINE_FRAMES)

enum cpprof_status
pprof_new(struct pprof_profile **profile, struct cpprof_error *error)
{
    CPPROF__NEED(error, profile);

    struct pprof_profile *p = cpprof__pprof_make();

    if (!p)
        return cpprof__fail_nomem(error);
    *profile = p;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__build_string(struct pprof_profile *p, const char *text,
                     uint32_t *string, struct cpprof_error *error)
{
    uint32_t added = cpprof__strings_add_text(&p->strings, text ? text : "");

    if (added == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    *string = added;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__build_index(const char *what, size_t index, size_t n,
                    struct cpprof_error *error)
{
    if (index < n)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_INVALID, 0, "%s %zu of %zu", what, index,
                        n);
}

enum cpprof_status
cpprof__build_array(const char *what, const void *given, size_t n,
                    struct cpprof_error *error)
{
    if (given || !n)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_INVALID, 0, "%zu %ss are NULL", n, what);
}

enum cpprof_status
cpprof__build_room(const char *what, size_t n, struct cpprof_error *error)
{
    if (n < PPROF_NONE - 1)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_LIMIT, 0, "too many %ss", what);
}

/* ---- what there is once ------------------------------------------------ */

static enum cpprof_status
value_type(struct pprof_profile *p, const char *type, const char *unit,
           struct pprof_value_type *out, struct cpprof_error *error)
{
    struct pprof_value_type made = {0};
    enum cpprof_status status =
        cpprof__build_string(p, type, &made.type, error);

    if (status == CPPROF_OK)
        status = cpprof__build_string(p, unit, &made.unit, error);
    if (status == CPPROF_OK)
        *out = made;
    return status;
}

/* Another number of values for each sample: from the last sample to the first
 * when there are more, so that nothing is overwritten that is still needed. */
static void
widen(struct pprof_profile *p)
{
    size_t n = p->sample_types.n, i;

    for (i = p->samples.n; i-- > 0;) {
        memmove(p->values.at + i * n, p->values.at + i * (n - 1),
                (n - 1) * sizeof *p->values.at);
        p->values.at[i * n + n - 1] = 0;
    }
    p->values.n = p->samples.n * n;
}

enum cpprof_status
pprof_add_sample_type(struct pprof_profile *p, const char *type,
                      const char *unit, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    struct pprof_value_type made = {0};
    enum cpprof_status status = value_type(p, type, unit, &made, error);

    if (status != CPPROF_OK)
        return status;
    if (!CPPROF__ARRAY_ROOM(&p->sample_types, 1) ||
        !CPPROF__ARRAY_ROOM(&p->values, p->samples.n))
        return cpprof__fail_nomem(error);
    p->sample_types.at[p->sample_types.n++] = made;
    widen(p);
    cpprof__debug_check(p);
    return CPPROF_OK;
}

enum cpprof_status
pprof_set_sample_type(struct pprof_profile *p, size_t index, const char *type,
                      const char *unit, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    enum cpprof_status status =
        cpprof__build_index("sample type", index, p->sample_types.n, error);

    if (status == CPPROF_OK)
        status = value_type(p, type, unit, &p->sample_types.at[index], error);
    cpprof__debug_check(p);
    return status;
}

enum cpprof_status
pprof_remove_sample_type(struct pprof_profile *p, size_t index,
                         struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    enum cpprof_status status =
        cpprof__build_index("sample type", index, p->sample_types.n, error);
    size_t n = p->sample_types.n, kept = 0, i;

    if (status != CPPROF_OK)
        return status;
    if (n == 1 && p->samples.n)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "samples need a sample type");
    for (i = 0; i < p->values.n; i++)
        if (i % n != index)
            p->values.at[kept++] = p->values.at[i];
    p->values.n = kept;
    memmove(p->sample_types.at + index, p->sample_types.at + index + 1,
            (n - index - 1) * sizeof *p->sample_types.at);
    p->sample_types.n--;
    cpprof__debug_check(p);
    return CPPROF_OK;
}

enum cpprof_status
pprof_set_period(struct pprof_profile *p, const char *type, const char *unit,
                 int64_t period, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    enum cpprof_status status =
        value_type(p, type, unit, &p->info.period_type, error);

    if (status == CPPROF_OK)
        p->info.period = period;
    return status;
}

void
pprof_set_time(struct pprof_profile *p, int64_t time_ns, int64_t duration_ns)
{
    if (!p)
        return;
    p->info.time_ns = time_ns;
    p->info.duration_ns = duration_ns;
}

enum cpprof_status
pprof_set_default_sample_type(struct pprof_profile *p, const char *type,
                              struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    return cpprof__build_string(p, type, &p->info.default_sample_type, error);
}

enum cpprof_status
pprof_set_doc_url(struct pprof_profile *p, const char *url,
                  struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    return cpprof__build_string(p, url, &p->info.doc_url, error);
}

enum cpprof_status
pprof_set_frames(struct pprof_profile *p, const char *drop, const char *keep,
                 struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    uint32_t drop_string = 0, keep_string = 0;
    enum cpprof_status status =
        cpprof__build_string(p, drop, &drop_string, error);

    if (status == CPPROF_OK)
        status = cpprof__build_string(p, keep, &keep_string, error);
    if (status != CPPROF_OK)
        return status;
    p->info.drop_frames = drop_string;
    p->info.keep_frames = keep_string;
    return CPPROF_OK;
}

void
pprof_remove_comments(struct pprof_profile *p)
{
    if (p)
        p->comments.n = 0;
}

/* ---- tables ------------------------------------------------------------ */

/* All of a mapping but its id. */
static enum cpprof_status
make_mapping(struct pprof_profile *p, const struct pprof_new_mapping *given,
             struct pprof_mapping *made, struct cpprof_error *error)
{
    struct pprof_new_mapping m = {.size = sizeof m};
    enum cpprof_status status =
        cpprof__options(&m, sizeof m, given, "pprof_new_mapping", error);

    if (status == CPPROF_OK && m.flags & ~ALL_HAS)
        status = cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags %#x",
                              m.flags & ~ALL_HAS);
    *made = (struct pprof_mapping){.start = m.start,
                                   .limit = m.limit,
                                   .offset = m.offset,
                                   .flags = m.flags};
    if (status == CPPROF_OK)
        status = cpprof__build_string(p, m.file, &made->file, error);
    if (status == CPPROF_OK)
        status = cpprof__build_string(p, m.build_id, &made->build_id, error);
    return status;
}

static enum cpprof_status
make_function(struct pprof_profile *p, const struct pprof_new_function *given,
              struct pprof_function *made, struct cpprof_error *error)
{
    struct pprof_new_function f = {.size = sizeof f};
    enum cpprof_status status =
        cpprof__options(&f, sizeof f, given, "pprof_new_function", error);

    *made = (struct pprof_function){.start_line = f.start_line};
    if (status == CPPROF_OK)
        status = cpprof__build_string(p, f.name, &made->name, error);
    if (status == CPPROF_OK)
        status = cpprof__build_string(p, f.system_name ? f.system_name : f.name,
                                      &made->system_name, error);
    if (status == CPPROF_OK)
        status = cpprof__build_string(p, f.file, &made->file, error);
    return status;
}

static enum cpprof_status
check_location(const struct pprof_profile *p,
               const struct pprof_new_location *l, struct cpprof_error *error)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if (l->mapping != PPROF_NONE)
        status =
            cpprof__build_index("mapping", l->mapping, p->mappings.n, error);
    if (status == CPPROF_OK && l->flags & ~PPROF_FOLDED)
        status = cpprof__fail(error, CPPROF_INVALID, 0, "unknown flags %#x",
                              l->flags & ~PPROF_FOLDED);
    if (status == CPPROF_OK)
        status = cpprof__build_array("line", l->lines, l->n_lines, error);
    if (status == CPPROF_OK)
        status = cpprof__build_room("line", l->n_lines, error);
    for (i = 0; i < l->n_lines && status == CPPROF_OK; i++)
        status = cpprof__build_index("function", l->lines[i].function,
                                     p->functions.n, error);
    return status;
}

/* Its lines are behind all others, where nothing refers to them yet. */
static enum cpprof_status
make_location(struct pprof_profile *p, const struct pprof_new_location *given,
              struct pprof_location *made, struct cpprof_error *error)
{
    struct pprof_new_location l = {.size = sizeof l, .mapping = PPROF_NONE};
    enum cpprof_status status =
        cpprof__options(&l, sizeof l, given, "pprof_new_location", error);

    if (status == CPPROF_OK)
        status = check_location(p, &l, error);
    if (status != CPPROF_OK)
        return status;
    if (!CPPROF__ARRAY_ROOM_FOR(&p->lines, l.n_lines, &l.lines))
        return cpprof__fail_nomem(error);
    *made = (struct pprof_location){.address = l.address,
                                    .first_line = p->lines.n,
                                    .n_lines = (uint32_t)l.n_lines,
                                    .mapping = l.mapping,
                                    .flags = l.flags};
    if (l.n_lines)
        memcpy(p->lines.at + p->lines.n, l.lines, l.n_lines * sizeof *l.lines);
    return CPPROF_OK;
}

/* The calls of one table: `extra` takes over what belongs to a record. */
#define TABLE(name, table, extra)                                              \
    enum cpprof_status pprof_add_##name(                                       \
        struct pprof_profile *p, const struct pprof_new_##name *given,         \
        uint32_t *index, struct cpprof_error *error)                           \
    {                                                                          \
        struct pprof_##name made;                                              \
        enum cpprof_status status;                                             \
                                                                               \
        CPPROF__NEED(error, p);                                                \
        status = cpprof__build_room(#name, p->table.n, error);                 \
        if (status == CPPROF_OK)                                               \
            status = make_##name(p, given, &made, error);                      \
        if (status == CPPROF_OK && !CPPROF__ARRAY_ROOM(&p->table, 1))          \
            status = cpprof__fail_nomem(error);                                \
        if (status != CPPROF_OK)                                               \
            return status;                                                     \
        made.id = CPPROF__NEXT_ID(p, table);                                   \
        if (!made.id)                                                          \
            return cpprof__fail(error, CPPROF_LIMIT, 0, "no id is left");      \
        extra;                                                                 \
        if (index)                                                             \
            *index = (uint32_t)p->table.n;                                     \
        p->table.at[p->table.n++] = made;                                      \
        return CPPROF_OK;                                                      \
    }                                                                          \
                                                                               \
    enum cpprof_status pprof_set_##name(struct pprof_profile *p, size_t index, \
                                        const struct pprof_new_##name *given,  \
                                        struct cpprof_error *error)            \
    {                                                                          \
        struct pprof_##name made;                                              \
        enum cpprof_status status;                                             \
                                                                               \
        CPPROF__NEED(error, p);                                                \
        status = cpprof__build_index(#name, index, p->table.n, error);         \
        if (status == CPPROF_OK)                                               \
            status = make_##name(p, given, &made, error);                      \
        if (status != CPPROF_OK)                                               \
            return status;                                                     \
        made.id = p->table.at[index].id;                                       \
        extra;                                                                 \
        p->table.at[index] = made;                                             \
        cpprof__debug_check(p);                                                \
        return CPPROF_OK;                                                      \
    }
TABLE(mapping, mappings, (void)0)
TABLE(function, functions, (void)0)
TABLE(location, locations, p->lines.n += made.n_lines)
#undef TABLE
