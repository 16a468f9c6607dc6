/* SPDX-License-Identifier: MIT */
/*
 * Reads profile.proto. The fields of a message come in any order, and so do the
 * messages of a file: Go writes the string table last, others the samples last.
 * So there are two walks over the file.
 *
 * 1. Everything but samples: strings are interned; mappings, locations,
 *    functions, value types are put into their tables as they are, with string
 *    numbers and ids of the file. Then these are replaced by numbers and
 *    indices of our own.
 * 2. The samples (decode_samples.c), which find all that they refer to.
 *
 * Odd input is read as the reference reads it: the last of a repeated scalar
 * wins, unknown fields are skipped, and a known field of another wire type is
 * an error. Source: proto/profile.proto, profile/encode.go, profile/proto.go.
 */
#include "profile/proto/decode_internal.h"

#include "base/status.h"
#include "profile/model/check.h"

#include <stddef.h>
#include <string.h>

enum cpprof_status
cpprof__decode_bad(struct decoder *d, const uint8_t *at, const char *text)
{
    return cpprof__fail_at(d->error, (uint64_t)(at - d->data),
                           "parsing profile: %s", text);
}

/* How a scalar field of a message goes into its record. */
struct rule {
    uint8_t field; /* number in the file */
    enum {
        RULE_U64,
        RULE_STRING, /* a string number: 32 bits, linked later */
        RULE_FLAG,   /* a bit of a 32-bit word */
    } kind;
    uint8_t offset; /* in the record */
    uint8_t bit;    /* RULE_FLAG */
};

#define MAPPING(member)  offsetof(struct pprof_mapping, member)
#define LOCATION(member) offsetof(struct pprof_location, member)
#define LINE(member)     offsetof(struct pprof_line, member)
#define FUNCTION(member) offsetof(struct pprof_function, member)
#define TYPE(member)     offsetof(struct pprof_value_type, member)
#define HEAD(member)     offsetof(struct pprof_info, member)

/* Field numbers: proto/profile.proto. {0} ends a table. */
static const struct rule mapping_rules[] = {
    {1, RULE_U64, MAPPING(id), 0},
    {2, RULE_U64, MAPPING(start), 0},
    {3, RULE_U64, MAPPING(limit), 0},
    {4, RULE_U64, MAPPING(offset), 0},
    {5, RULE_STRING, MAPPING(file), 0},
    {6, RULE_STRING, MAPPING(build_id), 0},
    {7, RULE_FLAG, MAPPING(flags), PPROF_HAS_FUNCTIONS},
    {8, RULE_FLAG, MAPPING(flags), PPROF_HAS_FILENAMES},
    {9, RULE_FLAG, MAPPING(flags), PPROF_HAS_LINE_NUMBERS},
    {10, RULE_FLAG, MAPPING(flags), PPROF_HAS_INLINE_FRAMES},
    {0},
};
/* mapping_id (2) and line (4) are not scalars of the record. */
static const struct rule location_rules[] = {
    {1, RULE_U64, LOCATION(id), 0},
    {3, RULE_U64, LOCATION(address), 0},
    {5, RULE_FLAG, LOCATION(flags), PPROF_FOLDED},
    {0},
};
/* Nor is function_id (1). */
static const struct rule line_rules[] = {
    {2, RULE_U64, LINE(line), 0},
    {3, RULE_U64, LINE(column), 0},
    {0},
};
static const struct rule function_rules[] = {
    {1, RULE_U64, FUNCTION(id), 0},
    {2, RULE_STRING, FUNCTION(name), 0},
    {3, RULE_STRING, FUNCTION(system_name), 0},
    {4, RULE_STRING, FUNCTION(file), 0},
    {5, RULE_U64, FUNCTION(start_line), 0},
    {0},
};
static const struct rule type_rules[] = {
    {1, RULE_STRING, TYPE(type), 0},
    {2, RULE_STRING, TYPE(unit), 0},
    {0},
};
static const struct rule head_rules[] = {
    {7, RULE_STRING, HEAD(drop_frames), 0},
    {8, RULE_STRING, HEAD(keep_frames), 0},
    {9, RULE_U64, HEAD(time_ns), 0},
    {10, RULE_U64, HEAD(duration_ns), 0},
    {12, RULE_U64, HEAD(period), 0},
    {14, RULE_STRING, HEAD(default_sample_type), 0},
    {15, RULE_STRING, HEAD(doc_url), 0},
    {0},
};

static void
store(const struct rule *rule, uint64_t value, char *record)
{
    char *at = record + rule->offset;

    switch (rule->kind) {
    case RULE_U64:
        memcpy(at, &value, sizeof value);
        break;
    case RULE_STRING:
        *(uint32_t *)at = cpprof__string_ref(value);
        break;
    case RULE_FLAG:
        if (value)
            *(uint32_t *)at |= rule->bit;
        else
            *(uint32_t *)at &= ~(uint32_t)rule->bit;
    }
}

static enum cpprof_status
apply(struct decoder *d, const struct rule *rules,
      const struct cpprof__field *field, const uint8_t *at, void *record)
{
    for (; rules->field; rules++) {
        if (rules->field != field->number)
            continue;
        if (field->wire != CPPROF__WIRE_VARINT)
            return cpprof__decode_bad(d, at, "type mismatch");
        store(rules, field->value, record);
        break;
    }
    return CPPROF_OK;
}

/* A message of scalars only. */
static enum cpprof_status
decode_flat(struct decoder *d, const struct cpprof__field *message,
            const struct rule *rules, void *record)
{
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        status = apply(d, rules, &field, r.next, record);
    return error ? cpprof__decode_bad(d, r.next, error) : status;
}

static enum cpprof_status
decode_line(struct decoder *d, const struct cpprof__field *message)
{
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    struct pprof_line line = {.function = PPROF_NONE};
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;
    uint64_t function = 0;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
        if (field.number != 1)
            status = apply(d, line_rules, &field, r.next, &line);
        else if (field.wire == CPPROF__WIRE_VARINT)
            function = field.value;
        else
            status = cpprof__decode_bad(d, r.next, "type mismatch");
    }
    if (error || status != CPPROF_OK)
        return error ? cpprof__decode_bad(d, r.next, error) : status;
    if (!CPPROF__ARRAY_ROOM(&d->p->lines, 1) ||
        !CPPROF__ARRAY_ROOM(&d->function_ids, 1))
        return cpprof__fail_nomem(d->error);
    d->p->lines.at[d->p->lines.n++] = line;
    d->function_ids.at[d->function_ids.n++] = function;
    return CPPROF_OK;
}

static enum cpprof_status
location_field(struct decoder *d, const struct cpprof__field *field,
               const uint8_t *at, struct pprof_location *l, uint64_t *mapping)
{
    if (field->number == 2 && field->wire == CPPROF__WIRE_VARINT) {
        *mapping = field->value;
        return CPPROF_OK;
    }
    if (field->number == 4 && field->wire == CPPROF__WIRE_BYTES) {
        l->n_lines++;
        return decode_line(d, field);
    }
    if (field->number == 2 || field->number == 4)
        return cpprof__decode_bad(d, at, "type mismatch");
    return apply(d, location_rules, field, at, l);
}

static enum cpprof_status
decode_location(struct decoder *d, const struct cpprof__field *message)
{
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    struct pprof_location location = {.first_line = d->p->lines.n};
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;
    uint64_t mapping = 0;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        status = location_field(d, &field, r.next, &location, &mapping);
    if (error || status != CPPROF_OK)
        return error ? cpprof__decode_bad(d, r.next, error) : status;
    if (!CPPROF__ARRAY_ROOM(&d->p->locations, 1) ||
        !CPPROF__ARRAY_ROOM(&d->mapping_ids, 1))
        return cpprof__fail_nomem(d->error);
    d->p->locations.at[d->p->locations.n++] = location;
    d->mapping_ids.at[d->mapping_ids.n++] = mapping;
    return CPPROF_OK;
}

static enum cpprof_status
decode_string(struct decoder *d, const struct cpprof__field *field)
{
    uint32_t string;

    if (d->strings.n == 0 && field->n)
        return cpprof__decode_bad(d, field->data, "string_table[0] must be ''");
    string = cpprof__strings_add(&d->p->strings, (const char *)field->data,
                                 field->n);
    if (string == CPPROF__NO_STRING || !CPPROF__ARRAY_ROOM(&d->strings, 1))
        return cpprof__fail_nomem(d->error);
    d->strings.at[d->strings.n++] = string;
    return CPPROF_OK;
}

static enum cpprof_status
add_comment(struct decoder *d, uint64_t string)
{
    if (!CPPROF__ARRAY_ROOM(&d->p->comments, 1))
        return cpprof__fail_nomem(d->error);
    d->p->comments.at[d->p->comments.n++] = cpprof__string_ref(string);
    return CPPROF_OK;
}

static enum cpprof_status
decode_comments(struct decoder *d, const struct cpprof__field *field,
                const uint8_t *at)
{
    struct cpprof__reader r = cpprof__reader(field->data, field->n);
    enum cpprof_status status = CPPROF_OK;

    if (field->wire == CPPROF__WIRE_VARINT)
        return add_comment(d, field->value);
    if (field->wire != CPPROF__WIRE_BYTES)
        return cpprof__decode_bad(d, at, "type mismatch");
    while (status == CPPROF_OK && r.next < r.end) {
        uint64_t string = cpprof__read_varint(&r);

        status = r.bad ? cpprof__decode_bad(d, at, "bad varint")
                       : add_comment(d, string);
    }
    return status;
}

/* Add a record of zero bytes to a table and decode a message into it. */
#define DECODE_INTO(d, table, field, rules)                                    \
    (CPPROF__ARRAY_ADD(&(d)->p->table)                                         \
         ? decode_flat(d, field, rules,                                        \
                       memset(&(d)->p->table.at[(d)->p->table.n - 1], 0,       \
                              sizeof *(d)->p->table.at))                       \
         : cpprof__fail_nomem((d)->error))

/* The fields of the file that are messages or strings. */
#define PARTS                                                                  \
    (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 11)

static enum cpprof_status
part(struct decoder *d, const struct cpprof__field *field, const uint8_t *at)
{
    if (field->wire != CPPROF__WIRE_BYTES)
        return cpprof__decode_bad(d, at, "type mismatch");
    switch (field->number) {
    case 1:
        return DECODE_INTO(d, sample_types, field, type_rules);
    case 3:
        return DECODE_INTO(d, mappings, field, mapping_rules);
    case 4:
        return decode_location(d, field);
    case 5:
        return DECODE_INTO(d, functions, field, function_rules);
    case 6:
        return decode_string(d, field);
    case 11:
        memset(&d->p->info.period_type, 0, sizeof d->p->info.period_type);
        return decode_flat(d, field, type_rules, &d->p->info.period_type);
    }
    d->n_samples++;
    if (!d->samples_begin)
        d->samples_begin = d->before;
    d->samples_end = at;
    return CPPROF_OK;
}

static enum cpprof_status
top_level(struct decoder *d, const struct cpprof__field *field,
          const uint8_t *at)
{
    if (field->number < 32 && PARTS >> field->number & 1)
        return part(d, field, at);
    if (field->number == 13)
        return decode_comments(d, field, at);
    if (field->number == 9 && d->p->info.time_ns)
        return cpprof__decode_bad(d, at, "concatenated profiles detected");
    return apply(d, head_rules, field, at, &d->p->info);
}

static enum cpprof_status
first_walk(struct decoder *d)
{
    struct cpprof__reader r = cpprof__reader(d->data, d->n);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    d->before = r.next;
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
        status = top_level(d, &field, r.next);
        d->before = r.next;
    }
    return error ? cpprof__decode_bad(d, d->before, error) : status;
}

/* ----------------------------------------------- between the walks ----
 * The tables still hold string numbers and ids of the file; replace them by
 * numbers of our strings and by indices. An id that nothing has becomes
 * PPROF_NONE, which is legal for a location's mapping and found by the check
 * for all others. */

static bool
link_value_type(const struct decoder *d, struct pprof_value_type *t)
{
    return cpprof__link_string(d, &t->type) && cpprof__link_string(d, &t->unit);
}

static bool
link_head(struct decoder *d)
{
    struct pprof_info *head = &d->p->info;
    size_t i;

    for (i = 0; i < d->p->sample_types.n; i++)
        if (!link_value_type(d, &d->p->sample_types.at[i]))
            return false;
    for (i = 0; i < d->p->comments.n; i++)
        if (!cpprof__link_string(d, &d->p->comments.at[i]))
            return false;
    return link_value_type(d, &head->period_type) &&
           cpprof__link_string(d, &head->default_sample_type) &&
           cpprof__link_string(d, &head->drop_frames) &&
           cpprof__link_string(d, &head->keep_frames) &&
           cpprof__link_string(d, &head->doc_url);
}

static bool
link_strings(struct decoder *d)
{
    size_t i;

    for (i = 0; i < d->p->mappings.n; i++) {
        struct pprof_mapping *m = &d->p->mappings.at[i];

        if (!cpprof__link_string(d, &m->file) ||
            !cpprof__link_string(d, &m->build_id))
            return false;
    }
    for (i = 0; i < d->p->functions.n; i++) {
        struct pprof_function *f = &d->p->functions.at[i];

        if (!cpprof__link_string(d, &f->name) ||
            !cpprof__link_string(d, &f->system_name) ||
            !cpprof__link_string(d, &f->file))
            return false;
    }
    return link_head(d);
}

static enum cpprof_status
link_mappings(struct decoder *d)
{
    struct cpprof__id_map map;
    bool made = cpprof__id_map_make(&map, d->p->mappings.at, d->p->mappings.n,
                                    sizeof *d->p->mappings.at);
    size_t i;

    for (i = 0; made && i < d->p->locations.n; i++)
        d->p->locations.at[i].mapping =
            cpprof__id_map_get(&map, d->mapping_ids.at[i]);
    cpprof__id_map_free(&map);
    return made ? CPPROF_OK : cpprof__fail_nomem(d->error);
}

/* Id 0 means no function, even if a function has that id. */
static enum cpprof_status
link_functions(struct decoder *d)
{
    struct cpprof__id_map map;
    bool made = cpprof__id_map_make(&map, d->p->functions.at, d->p->functions.n,
                                    sizeof *d->p->functions.at);
    size_t i;

    for (i = 0; made && i < d->p->lines.n; i++)
        if (d->function_ids.at[i])
            d->p->lines.at[i].function =
                cpprof__id_map_get(&map, d->function_ids.at[i]);
    cpprof__id_map_free(&map);
    return made ? CPPROF_OK : cpprof__fail_nomem(d->error);
}

static enum cpprof_status
link_tables(struct decoder *d)
{
    struct pprof_profile *p = d->p;
    enum cpprof_status status;

    if (p->mappings.n >= PPROF_NONE || p->functions.n >= PPROF_NONE ||
        p->locations.n >= PPROF_NONE)
        return cpprof__fail(d->error, CPPROF_LIMIT, 0,
                            "parsing profile: more than 4294967294 entries");
    if (!link_strings(d))
        return cpprof__fail(d->error, CPPROF_BAD_DATA, 0,
                            "parsing profile: malformed profile format: no "
                            "such string in a table of %zu",
                            d->strings.n);
    status = link_mappings(d);
    if (status == CPPROF_OK)
        status = link_functions(d);
    if (status == CPPROF_OK &&
        !cpprof__id_map_make(&d->locations, p->locations.at, p->locations.n,
                             sizeof *p->locations.at))
        status = cpprof__fail_nomem(d->error);
    CPPROF__ARRAY_FREE(&d->mapping_ids);
    CPPROF__ARRAY_FREE(&d->function_ids);
    return status;
}

static void
decoder_free(struct decoder *d)
{
    CPPROF__ARRAY_FREE(&d->strings);
    CPPROF__ARRAY_FREE(&d->mapping_ids);
    CPPROF__ARRAY_FREE(&d->function_ids);
    CPPROF__ARRAY_FREE(&d->sample_labels);
    cpprof__id_map_free(&d->locations);
    pprof_free(d->p);
}

enum cpprof_status
cpprof__decode(uint8_t *data, size_t n, bool consume,
               struct pprof_profile **out, struct cpprof_error *error)
{
    struct decoder d = {.data = data, .n = n, .error = error};
    enum cpprof_status status;

    d.released = consume ? data : NULL;
    d.p = cpprof__pprof_make();
    if (!d.p)
        return cpprof__fail_nomem(error);
    status =
        n ? first_walk(&d) : cpprof__decode_bad(&d, data, "empty input file");
    if (status == CPPROF_OK)
        status = link_tables(&d);
    if (status == CPPROF_OK)
        status = cpprof__check_tables(d.p, error);
    if (status == CPPROF_OK)
        status = cpprof__decode_samples(&d);
    if (status == CPPROF_OK) {
        *out = d.p;
        d.p = NULL;
    }
    decoder_free(&d);
    return status;
}
