/* SPDX-License-Identifier: MIT */
/*
 * The dictionary: entry i of mappings, locations and functions becomes entry i
 * - 1 of the model; strings are interned; links and stacks stay bytes until
 * they are used.
 */
#include "profile/otlp/decode_internal.h"

#include "base/status.h"

#include <string.h>

/* --------------------------------------------------- the dictionary ---- */

static enum cpprof_status
read_strings(struct decoder *d)
{
    size_t i;

    for (i = 0; i < d->strings_at.n; i++) {
        const struct bytes *text = &d->strings_at.at[i];
        uint32_t *one = CPPROF__ARRAY_ADD(&d->strings);

        if (!one)
            return cpprof__otlp_no_memory(d);
        *one = cpprof__strings_add(&d->p->strings, (const char *)text->data,
                                   text->n);
        if (*one == CPPROF__NO_STRING)
            return cpprof__otlp_no_memory(d);
    }
    return CPPROF_OK;
}

static enum cpprof_status
read_attribute(struct decoder *d, struct bytes message)
{
    struct cpprof__reader r = reader(message);
    struct attribute *a = CPPROF__ARRAY_ADD(&d->attributes);
    struct cpprof__field field;
    const char *error;

    if (!a)
        return cpprof__otlp_no_memory(d);
    memset(a, 0, sizeof *a);
    if (!cpprof__otlp_string(d, cpprof__otlp_number_of(message, 1), &a->key) ||
        !cpprof__otlp_string(d, cpprof__otlp_number_of(message, 3), &a->unit))
        return cpprof__otlp_no_such(d, message, "string");
    while (cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 2))
            a->value = bytes_of(&field);
    return cpprof__otlp_is_message(a->value)
               ? CPPROF_OK
               : cpprof__otlp_bad(d, a->value.data, "not enough data");
}

static enum cpprof_status
read_function(struct decoder *d, struct bytes message)
{
    struct pprof_function f = {.id = d->p->functions.n + 1}, *to;

    if (!cpprof__otlp_string(d, cpprof__otlp_number_of(message, 1), &f.name) ||
        !cpprof__otlp_string(d, cpprof__otlp_number_of(message, 2),
                             &f.system_name) ||
        !cpprof__otlp_string(d, cpprof__otlp_number_of(message, 3), &f.file))
        return cpprof__otlp_no_such(d, message, "string");
    f.start_line = (int64_t)cpprof__otlp_number_of(message, 4);
    to = CPPROF__ARRAY_ADD(&d->p->functions);
    if (!to)
        return cpprof__otlp_no_memory(d);
    *to = f;
    return CPPROF_OK;
}

static enum cpprof_status
mapping_attribute(struct decoder *d, uint64_t number, void *ctx)
{
    static const char *const has[] = CPPROF__OTLP_HAS;
    struct pprof_mapping *m = ctx;
    const struct attribute *a;
    enum cpprof_status status =
        cpprof__otlp_attribute_at(d, number, "mapping", &a);
    unsigned bit;

    if (status != CPPROF_OK)
        return status;
    if (cpprof__otlp_has_key(d, a, CPPROF__OTLP_BUILD_ID) ||
        (!m->build_id && cpprof__otlp_has_key(d, a, CPPROF__OTLP_BUILD_ID_GO)))
        cpprof__otlp_text_of(d, a->value, &m->build_id);
    for (bit = 0; bit < 4; bit++)
        if (cpprof__otlp_has_key(d, a, has[bit]) &&
            cpprof__otlp_number_of(a->value, 2))
            m->flags |= 1u << bit;
    return CPPROF_OK;
}

static enum cpprof_status
read_mapping(struct decoder *d, struct bytes message)
{
    struct pprof_mapping m = {.id = d->p->mappings.n + 1}, *to;
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__reader r = reader(message);
    struct cpprof__field field;
    const char *error;

    m.start = cpprof__otlp_number_of(message, 1);
    m.limit = cpprof__otlp_number_of(message, 2);
    m.offset = cpprof__otlp_number_of(message, 3);
    if (!cpprof__otlp_string(d, cpprof__otlp_number_of(message, 4), &m.file))
        return cpprof__otlp_no_such(d, message, "string");
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (field.number == 5)
            status = cpprof__otlp_each_number(d, &field, mapping_attribute, &m);
    if (status != CPPROF_OK)
        return status;
    to = CPPROF__ARRAY_ADD(&d->p->mappings);
    if (!to)
        return cpprof__otlp_no_memory(d);
    *to = m;
    return CPPROF_OK;
}

static enum cpprof_status
location_attribute(struct decoder *d, uint64_t number, void *ctx)
{
    struct pprof_location *l = ctx;
    const struct attribute *a;
    enum cpprof_status status =
        cpprof__otlp_attribute_at(d, number, "location", &a);

    if (status != CPPROF_OK)
        return status;
    if (cpprof__otlp_has_key(d, a, CPPROF__OTLP_IS_FOLDED) &&
        cpprof__otlp_number_of(a->value, 2))
        l->flags |= PPROF_FOLDED;
    return CPPROF_OK;
}

/* A line without a function says nothing that pprof could hold. */
static enum cpprof_status
read_line(struct decoder *d, struct bytes message, struct pprof_location *l)
{
    uint64_t function = cpprof__otlp_number_of(message, 1);
    struct pprof_line *line;

    if (!cpprof__otlp_is_message(message))
        return cpprof__otlp_bad(d, message.data, "not enough data");
    if (function > d->p->functions.n)
        return cpprof__otlp_no_such(d, message, "function");
    if (!function)
        return CPPROF_OK;
    line = CPPROF__ARRAY_ADD(&d->p->lines);
    if (!line)
        return cpprof__otlp_no_memory(d);
    *line = (struct pprof_line){(int64_t)cpprof__otlp_number_of(message, 2),
                                (int64_t)cpprof__otlp_number_of(message, 3),
                                (uint32_t)function - 1};
    l->n_lines++;
    return CPPROF_OK;
}

static enum cpprof_status
read_location(struct decoder *d, struct bytes message)
{
    struct pprof_location l = {.id = d->p->locations.n + 1,
                               .first_line = d->p->lines.n,
                               .mapping = PPROF_NONE},
                          *to;
    uint64_t mapping = cpprof__otlp_number_of(message, 1);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__reader r = reader(message);
    struct cpprof__field field;
    const char *error;

    if (mapping > d->p->mappings.n)
        return cpprof__otlp_no_such(d, message, "mapping");
    l.mapping = mapping ? (uint32_t)mapping - 1 : PPROF_NONE;
    l.address = cpprof__otlp_number_of(message, 2);
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 3))
            status = read_line(d, bytes_of(&field), &l);
        else if (field.number == 4)
            status =
                cpprof__otlp_each_number(d, &field, location_attribute, &l);
    if (status != CPPROF_OK)
        return status;
    to = CPPROF__ARRAY_ADD(&d->p->locations);
    if (!to)
        return cpprof__otlp_no_memory(d);
    *to = l;
    return CPPROF_OK;
}

/* All entries of a table from the given one on. */
static enum cpprof_status
read_table(struct decoder *d, const bytes_table *table, size_t first,
           enum cpprof_status (*read)(struct decoder *d, struct bytes message))
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = first; i < table->n && status == CPPROF_OK; i++)
        status =
            cpprof__otlp_is_message(table->at[i])
                ? read(d, table->at[i])
                : cpprof__otlp_bad(d, table->at[i].data, "not enough data");
    return status;
}

/* Sort the fields of a dictionary into tables. */
enum cpprof_status
cpprof__otlp_split_dictionary(struct decoder *d, struct bytes message)
{
    bytes_table *tables[] = {
        NULL,         &d->mappings_at, &d->locations_at,  &d->functions_at,
        &d->links_at, &d->strings_at,  &d->attributes_at, &d->stacks_at};
    struct cpprof__reader r = reader(message);
    struct cpprof__field field;
    const char *error = NULL;

    while (cpprof__proto_next(&r, &field, &error)) {
        struct bytes *one;

        if (field.number < 1 || field.number > 7)
            continue;
        if (field.wire != CPPROF__WIRE_BYTES)
            return cpprof__otlp_bad(d, r.next, "type mismatch");
        one = CPPROF__ARRAY_ADD(tables[field.number]);
        if (!one)
            return cpprof__otlp_no_memory(d);
        *one = bytes_of(&field);
    }
    return error ? cpprof__otlp_bad(d, r.next, error) : CPPROF_OK;
}

enum cpprof_status
cpprof__otlp_read_dictionary(struct decoder *d)
{
    enum cpprof_status status = CPPROF_OK;

    if (!d->strings_at.n || d->strings_at.at[0].n)
        return cpprof__otlp_bad(d, NULL,
                                "the first string is not the empty one");
    if (d->functions_at.n >= PPROF_NONE || d->locations_at.n >= PPROF_NONE ||
        d->mappings_at.n >= PPROF_NONE || d->stacks_at.n >= PPROF_NONE)
        return cpprof__fail(d->error, CPPROF_LIMIT, 0,
                            "parsing profile: more than 4294967294 entries");
    status = read_strings(d);
    if (status == CPPROF_OK)
        status = read_table(d, &d->attributes_at, 0, read_attribute);
    if (status == CPPROF_OK)
        status = read_table(d, &d->functions_at, 1, read_function);
    if (status == CPPROF_OK)
        status = read_table(d, &d->mappings_at, 1, read_mapping);
    if (status == CPPROF_OK)
        status = read_table(d, &d->locations_at, 1, read_location);
    return status;
}
