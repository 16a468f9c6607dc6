/* SPDX-License-Identifier: MIT */
/*
 * Reads ProfilesData (otlp.h), in two walks: the dictionary, which other fields
 * refer to, may be the last of them.
 *
 * 1. The dictionary. Entry i of mappings, locations and functions becomes entry
 *    i - 1 of the model; strings are interned; attributes and stacks stay bytes
 *    until they are used.
 * 2. The profiles. First their sample types, then their samples: row by row
 *    those of the first one, and of every other one in its scope that has the
 *    same stacks and attributes in the same order only the values.
 *
 * What a stack or a set of attributes is repeated for costs nothing in the file
 * and memory here, so there is a limit to it. Unknown fields are skipped.
 */
#include "profile/otlp/decode_internal.h"

#include "base/status.h"
#include "profile/model/check.h"

#include <string.h>

/* Values that a sample may have. A file of some bytes could name as many types
 * as it has bytes, and each would be a column. */
#define MAX_TYPES 64

/* ---------------------------------------------------------- profiles ---- */

/* Take what a profile has once from the first one that is read, and let the
 * time that it covers be that of all. */
static void
head_times(struct decoder *d, int64_t time_ns, int64_t duration_ns)
{
    struct pprof_info *info = &d->p->info;
    int64_t end = 0, other = 0;

    if (!d->has_head || !info->time_ns || !time_ns) {
        if (!info->time_ns)
            info->time_ns = time_ns;
        if (info->duration_ns < duration_ns)
            info->duration_ns = duration_ns;
        return;
    }
    if (__builtin_add_overflow(info->time_ns, info->duration_ns, &end) ||
        __builtin_add_overflow(time_ns, duration_ns, &other))
        return;
    end = end > other ? end : other;
    if (time_ns < info->time_ns)
        info->time_ns = time_ns;
    if (!__builtin_sub_overflow(end, info->time_ns, &other))
        info->duration_ns = other;
}

static enum cpprof_status
add_comments(struct decoder *d, struct bytes value)
{
    struct cpprof__reader r = reader(value), inner;
    struct cpprof__field array, field;
    const char *error;
    uint32_t text, *to;

    while (cpprof__proto_next(&r, &array, &error)) {
        if (!IS_BYTES(&array, 5))
            continue;
        inner = cpprof__reader(array.data, array.n);
        while (cpprof__proto_next(&inner, &field, &error)) {
            if (!IS_BYTES(&field, 1) ||
                !cpprof__otlp_text_of(d, bytes_of(&field), &text))
                continue;
            to = CPPROF__ARRAY_ADD(&d->p->comments);
            if (!to)
                return cpprof__otlp_no_memory(d);
            *to = text;
        }
    }
    return CPPROF_OK;
}

static enum cpprof_status
profile_attribute(struct decoder *d, uint64_t number, void *ctx)
{
    struct pprof_info *info = &d->p->info;
    const struct attribute *a;
    enum cpprof_status status =
        cpprof__otlp_attribute_at(d, number, "profile", &a);

    (void)ctx;
    if (status != CPPROF_OK)
        return status;
    if (cpprof__otlp_has_key(d, a, CPPROF__OTLP_COMMENT))
        return add_comments(d, a->value);
    if (cpprof__otlp_has_key(d, a, CPPROF__OTLP_DROP_FRAMES))
        cpprof__otlp_text_of(d, a->value, &info->drop_frames);
    else if (cpprof__otlp_has_key(d, a, CPPROF__OTLP_KEEP_FRAMES))
        cpprof__otlp_text_of(d, a->value, &info->keep_frames);
    else if (cpprof__otlp_has_key(d, a, CPPROF__OTLP_DOC_URL))
        cpprof__otlp_text_of(d, a->value, &info->doc_url);
    return CPPROF_OK;
}

static enum cpprof_status
read_type(struct decoder *d, struct bytes message,
          struct pprof_value_type *type)
{
    if (!cpprof__otlp_is_message(message))
        return cpprof__otlp_bad(d, message.data, "not enough data");
    return cpprof__otlp_string(d, cpprof__otlp_number_of(message, 1),
                               &type->type) &&
                   cpprof__otlp_string(d, cpprof__otlp_number_of(message, 2),
                                       &type->unit)
               ? CPPROF_OK
               : cpprof__otlp_no_such(d, message, "string");
}

/* All of a profile but its samples and their type. */
static enum cpprof_status
read_head(struct decoder *d, struct bytes message)
{
    struct cpprof__reader r = reader(message);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;
    int64_t time_ns = 0;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
        if (is(&field, 3, CPPROF__WIRE_FIXED64))
            time_ns = (int64_t)field.value;
        if (d->has_head)
            continue;
        if (IS_BYTES(&field, 5))
            status = read_type(d, bytes_of(&field), &d->p->info.period_type);
        else if (IS_NUMBER(&field, 6))
            d->p->info.period = (int64_t)field.value;
        else if (field.number == 11)
            status =
                cpprof__otlp_each_number(d, &field, profile_attribute, NULL);
    }
    if (error)
        return cpprof__otlp_bad(d, r.next, error);
    head_times(d, time_ns, (int64_t)cpprof__otlp_number_of(message, 4));
    d->has_head = true;
    return status;
}

/* The sample type of a profile. */
static enum cpprof_status
type_of(struct decoder *d, struct bytes message, struct pprof_value_type *type)
{
    struct cpprof__reader r = reader(message);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    memset(type, 0, sizeof *type);
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1))
            status = read_type(d, bytes_of(&field), type);
    return error ? cpprof__otlp_bad(d, r.next, error) : status;
}

/* The column of a type, n_types when there is none. */
static size_t
find_type(const struct decoder *d, const struct pprof_value_type *type)
{
    size_t i = 0;

    while (i < d->p->sample_types.n &&
           (d->p->sample_types.at[i].type != type->type ||
            d->p->sample_types.at[i].unit != type->unit))
        i++;
    return i;
}

static enum cpprof_status
add_type(struct decoder *d, struct bytes profile)
{
    struct pprof_value_type type, *to;
    enum cpprof_status status = type_of(d, profile, &type);

    if (status != CPPROF_OK || find_type(d, &type) < d->p->sample_types.n)
        return status;
    if (d->p->sample_types.n == MAX_TYPES)
        return cpprof__fail(d->error, CPPROF_LIMIT, 0,
                            "parsing profile: OTLP: more than %d sample types",
                            MAX_TYPES);
    to = CPPROF__ARRAY_ADD(&d->p->sample_types);
    if (!to)
        return cpprof__otlp_no_memory(d);
    *to = type;
    return CPPROF_OK;
}

/* Is the n-th sample of a profile that of the first one of its scope? */
static bool
is_aligned(const struct decoder *d, const struct row *row, size_t n)
{
    return n < d->first_rows.n && d->first_rows.at[n].stack == row->stack &&
           d->first_rows.at[n].labels == row->labels;
}

/* Walk over the samples of a profile with what is done with each. */
static enum cpprof_status
each_row(struct decoder *d, struct bytes profile,
         enum cpprof_status (*use)(struct decoder *d, const struct row *row,
                                   size_t n, void *ctx),
         void *ctx)
{
    struct cpprof__reader r = reader(profile);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error;
    struct row row;
    size_t n = 0;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
        if (!IS_BYTES(&field, 2))
            continue;
        status = cpprof__otlp_read_row(d, bytes_of(&field), &row);
        if (status == CPPROF_OK)
            status = use(d, &row, n++, ctx);
    }
    return status;
}

static enum cpprof_status
compare_row(struct decoder *d, const struct row *row, size_t n, void *ctx)
{
    size_t *n_alike = ctx;

    if (n == *n_alike && is_aligned(d, row, n))
        (*n_alike)++;
    return CPPROF_OK;
}

static enum cpprof_status
set_value(struct decoder *d, const struct row *row, size_t n, void *ctx)
{
    int64_t *value = cpprof__values(d->p, d->first_sample + n) + *(size_t *)ctx;

    *value = (int64_t)((uint64_t)*value + (uint64_t)row->value);
    return CPPROF_OK;
}

static enum cpprof_status
keep_row(struct decoder *d, const struct row *row, size_t n, void *ctx)
{
    struct row *to;

    (void)n;
    if (cpprof__otlp_spend(d, sizeof *to) != CPPROF_OK)
        return CPPROF_LIMIT;
    to = CPPROF__ARRAY_ADD(&d->first_rows);
    if (!to)
        return cpprof__otlp_no_memory(d);
    *to = *row;
    return cpprof__otlp_add_sample(d, row, *(size_t *)ctx);
}

static enum cpprof_status
append_row(struct decoder *d, const struct row *row, size_t n, void *ctx)
{
    (void)n;
    return cpprof__otlp_add_sample(d, row, *(size_t *)ctx);
}

static size_t
n_samples_of(struct bytes profile)
{
    struct cpprof__reader r = reader(profile);
    struct cpprof__field field;
    const char *error;
    size_t n = 0;

    while (cpprof__proto_next(&r, &field, &error))
        n += IS_BYTES(&field, 2);
    return n;
}

static enum cpprof_status
read_profile(struct decoder *d, struct bytes profile, bool is_first)
{
    struct pprof_value_type type;
    enum cpprof_status status = type_of(d, profile, &type);
    size_t column, n_alike = 0, n = n_samples_of(profile);

    if (status == CPPROF_OK)
        status = read_head(d, profile);
    if (status != CPPROF_OK)
        return status;
    column = find_type(d, &type);
    if (is_first) {
        d->first_rows.n = 0;
        d->first_sample = d->p->samples.n;
        return each_row(d, profile, keep_row, &column);
    }
    if (n == d->first_rows.n)
        status = each_row(d, profile, compare_row, &n_alike);
    if (status != CPPROF_OK)
        return status;
    return n == d->first_rows.n && n_alike == n
               ? each_row(d, profile, set_value, &column)
               : each_row(d, profile, append_row, &column);
}

/* ------------------------------------------------ scopes, resources ---- */

/* Find an attribute of a Resource or Scope, of which `field` is the field of
 * attributes. NULL data: there is none. */
static struct bytes
pair_value(struct decoder *d, struct bytes message, uint32_t number,
           const char *key)
{
    struct cpprof__reader r = reader(message), inner;
    struct bytes value, found = {0};
    struct cpprof__field field, part;
    const char *error;

    while (cpprof__proto_next(&r, &field, &error)) {
        bool is_key = false;

        if (!IS_BYTES(&field, number))
            continue;
        value = (struct bytes){0};
        inner = cpprof__reader(field.data, field.n);
        while (cpprof__proto_next(&inner, &part, &error)) {
            uint32_t text;

            if (IS_BYTES(&part, 1))
                is_key = part.n == strlen(key) &&
                         memcmp(part.data, key, part.n) == 0;
            else if (IS_NUMBER(&part, 3) &&
                     cpprof__otlp_string(d, part.value, &text))
                is_key = strcmp(cpprof__strings_text(&d->p->strings, text),
                                key) == 0;
            else if (IS_BYTES(&part, 2))
                value = bytes_of(&part);
        }
        if (is_key && cpprof__otlp_is_message(value))
            found = value;
    }
    return found;
}

/* The places that the profiles of a scope had in pprof, by their order here:
 * false if it does not say so, of each one. */
static bool
read_order(struct bytes value, size_t n, size_t *places)
{
    struct cpprof__reader r = reader(value), inner;
    struct cpprof__field array, field;
    uint64_t seen = 0;
    const char *error;
    size_t i = 0;

    while (cpprof__proto_next(&r, &array, &error)) {
        if (!IS_BYTES(&array, 5))
            continue;
        inner = cpprof__reader(array.data, array.n);
        while (cpprof__proto_next(&inner, &field, &error)) {
            uint64_t place = cpprof__otlp_number_of(bytes_of(&field), 3);

            if (!IS_BYTES(&field, 1) || i == n || place >= n ||
                seen >> place & 1)
                return false;
            seen |= (uint64_t)1 << place;
            places[i++] = place;
        }
    }
    return i == n;
}

/* The profiles of one scope, and what else it has. */
struct scope {
    bytes_table profiles;
    struct bytes scope;
};

static enum cpprof_status
read_scope(struct decoder *d, struct bytes message, struct scope *s)
{
    struct cpprof__reader r = reader(message);
    struct cpprof__field field;
    const char *error = NULL;

    s->profiles.n = 0;
    s->scope = (struct bytes){0};
    while (cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1)) {
            s->scope = bytes_of(&field);
        } else if (IS_BYTES(&field, 2)) {
            struct bytes *one = CPPROF__ARRAY_ADD(&s->profiles);

            if (!one)
                return cpprof__otlp_no_memory(d);
            *one = bytes_of(&field);
        }
    return error ? cpprof__otlp_bad(d, r.next, error) : CPPROF_OK;
}

/* Add the types of a scope in the order that they had; where it does not say
 * so, the first one is what a viewer shows first. */
static enum cpprof_status
add_types(struct decoder *d, const struct scope *s)
{
    struct bytes wanted = pair_value(d, s->scope, 3, CPPROF__OTLP_DEFAULT_TYPE);
    enum cpprof_status status = CPPROF_OK;
    size_t n = s->profiles.n, places[MAX_TYPES], i, k;
    struct pprof_value_type first;
    bool is_ours = n <= MAX_TYPES &&
                   read_order(pair_value(d, s->scope, 3, CPPROF__OTLP_ORDER), n,
                              places),
         is_new = !d->p->sample_types.n;

    for (i = 0; i < n && status == CPPROF_OK; i++) {
        for (k = 0; is_ours && k < n && places[k] != i; k++) {
        }
        status = add_type(d, s->profiles.at[is_ours ? k : i]);
    }
    if (status != CPPROF_OK || !is_new || !n)
        return status;
    if (wanted.data)
        cpprof__otlp_text_of(d, wanted, &d->p->info.default_sample_type);
    else if (!is_ours && n > 1) {
        status = type_of(d, s->profiles.at[0], &first);
        d->p->info.default_sample_type = first.type;
    }
    return status;
}

static enum cpprof_status
read_profiles(struct decoder *d, const struct scope *s)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < s->profiles.n && status == CPPROF_OK; i++)
        status = read_profile(d, s->profiles.at[i], i == 0);
    return status;
}

/* The name of the service, if samples are to have it. */
static uint32_t
service_of(struct decoder *d, struct bytes resource)
{
    struct cpprof__reader r = reader(resource);
    struct cpprof__field field;
    const char *error;
    uint32_t name = 0;

    while (d->many_resources && cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1))
            cpprof__otlp_text_of(
                d, pair_value(d, bytes_of(&field), 1, CPPROF__OTLP_SERVICE),
                &name);
    return name == CPPROF__NO_STRING ? 0 : name;
}

/* Do something with all scopes of all resources. */
static enum cpprof_status
each_scope(struct decoder *d,
           enum cpprof_status (*use)(struct decoder *d, const struct scope *s))
{
    enum cpprof_status status = CPPROF_OK;
    struct scope s = {0};
    size_t i;

    for (i = 0; i < d->resources.n && status == CPPROF_OK; i++) {
        struct cpprof__reader r = reader(d->resources.at[i]);
        struct cpprof__field field;
        const char *error = NULL;

        d->service = service_of(d, d->resources.at[i]);
        while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
            if (!IS_BYTES(&field, 2))
                continue;
            status = read_scope(d, bytes_of(&field), &s);
            if (status == CPPROF_OK)
                status = use(d, &s);
        }
        if (error)
            status = cpprof__otlp_bad(d, r.next, error);
    }
    CPPROF__ARRAY_FREE(&s.profiles);
    return status;
}

/* --------------------------------------------------------------- all ---- */

bool
cpprof__is_otlp(const uint8_t *data, size_t n)
{
    struct cpprof__reader r = cpprof__reader(data, n);
    struct cpprof__field field;
    bool has_dictionary = false;
    const char *error = NULL;

    while (cpprof__proto_next(&r, &field, &error)) {
        if (!IS_BYTES(&field, 1) && !IS_BYTES(&field, 2))
            return false;
        /* A sample type of pprof begins with a number. */
        if (field.number == 1 && field.n && (field.data[0] & 7) != 2)
            return false;
        has_dictionary |= field.number == 2;
    }
    return !error && has_dictionary;
}

static enum cpprof_status
split_data(struct decoder *d, size_t n)
{
    struct cpprof__reader r = cpprof__reader(d->data, n);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
        struct bytes *one;

        if (IS_BYTES(&field, 2))
            status = cpprof__otlp_split_dictionary(d, bytes_of(&field));
        if (!IS_BYTES(&field, 1))
            continue;
        one = CPPROF__ARRAY_ADD(&d->resources);
        if (!one)
            return cpprof__otlp_no_memory(d);
        *one = bytes_of(&field);
    }
    d->many_resources = d->resources.n > 1;
    return status;
}

static void
decoder_free(struct decoder *d)
{
    bytes_table *tables[] = {
        &d->strings_at,   &d->attributes_at, &d->mappings_at, &d->locations_at,
        &d->functions_at, &d->links_at,      &d->stacks_at,   &d->resources};
    size_t i;

    for (i = 0; i < sizeof tables / sizeof *tables; i++)
        CPPROF__ARRAY_FREE(tables[i]);
    CPPROF__ARRAY_FREE(&d->strings);
    CPPROF__ARRAY_FREE(&d->attributes);
    CPPROF__ARRAY_FREE(&d->labels);
    CPPROF__ARRAY_FREE(&d->known_labels);
    CPPROF__ARRAY_FREE(&d->first_rows);
    pprof_free(d->p);
}

enum cpprof_status
cpprof__otlp_decode(const uint8_t *data, size_t n, uint64_t max_bytes,
                    struct pprof_profile **profile, struct cpprof_error *error)
{
    struct decoder d = {.error = error, .data = data, .left = max_bytes};
    enum cpprof_status status;

    d.p = cpprof__pprof_make();
    if (!d.p)
        return cpprof__fail_nomem(error);
    status = split_data(&d, n);
    if (status == CPPROF_OK)
        status = cpprof__otlp_read_dictionary(&d);
    if (status == CPPROF_OK)
        status = each_scope(&d, add_types);
    if (status == CPPROF_OK)
        status = each_scope(&d, read_profiles);
    if (status == CPPROF_OK)
        status = pprof_check(d.p, error);
    if (status == CPPROF_OK) {
        *profile = d.p;
        d.p = NULL;
    }
    decoder_free(&d);
    return status;
}
