/* SPDX-License-Identifier: MIT */
/*
 * Samples: attributes and links become label sets, stacks frames, and values or
 * timestamps one value.
 */
#include "profile/otlp/decode_internal.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* A label costs time rather than memory: a set is kept once. More of them than
 * is usual have to be sorted. */
#define LABEL_COST   8
#define USUAL_LABELS 64
#define SORT_COST    128

/* Maps in maps are followed so far. */
#define MOST_MAPS 8

/* Of what a stack has and nobody writes: a location 0, an unknown field. Each
 * sample of the stack walks over it. */
#define JUNK_COST 64

/* ------------------------------------------------------------ labels ---- */

static enum cpprof_status
add_label(struct decoder *d, struct pprof_label label)
{
    struct pprof_label *to;

    if (cpprof__otlp_spend(d, d->labels.n < USUAL_LABELS
                                  ? LABEL_COST
                                  : SORT_COST) != CPPROF_OK)
        return CPPROF_LIMIT;
    to = CPPROF__ARRAY_ADD(&d->labels);
    if (!to)
        return cpprof__otlp_no_memory(d);
    *to = label;
    return CPPROF_OK;
}

static enum cpprof_status
add_text(struct decoder *d, uint32_t key, const char *text, size_t n)
{
    struct pprof_label label = {.key = key, .kind = PPROF_LABEL_TEXT};

    label.text = cpprof__strings_add(&d->p->strings, text, n);
    if (label.text == CPPROF__NO_STRING || key == CPPROF__NO_STRING)
        return cpprof__otlp_no_memory(d);
    /* An empty text is no label of pprof. */
    return n ? add_label(d, label) : CPPROF_OK;
}

static enum cpprof_status
add_hex(struct decoder *d, uint32_t key, struct bytes value)
{
    struct cpprof__buffer hex = {0};
    enum cpprof_status status;
    size_t i;

    for (i = 0; i < value.n; i++)
        cpprof__buffer_printf(&hex, "%02x", value.data[i]);
    status = hex.failed ? cpprof__otlp_no_memory(d)
                        : add_text(d, key, (const char *)hex.data, hex.n);
    cpprof__buffer_free(&hex);
    return status;
}

static enum cpprof_status
add_map(struct decoder *d, const struct attribute *a, struct bytes map,
        unsigned depth);

/* The label of one value, which is no array; those of a map. */
static enum cpprof_status
add_value(struct decoder *d, const struct attribute *a, struct bytes value,
          unsigned depth)
{
    struct pprof_label number = {
        .key = a->key, .unit = a->unit, .kind = PPROF_LABEL_NUMBER};
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__reader r = reader(value);
    struct cpprof__field field;
    const char *error;
    uint32_t text;
    char digits[32];
    double real;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error)) {
        if (IS_NUMBER(&field, 3)) {
            number.num = (int64_t)field.value;
            if (number.num || number.unit)
                status = add_label(d, number);
        } else if (IS_NUMBER(&field, 2)) {
            status = field.value ? add_text(d, a->key, "true", 4)
                                 : add_text(d, a->key, "false", 5);
        } else if (is(&field, 4, CPPROF__WIRE_FIXED64)) {
            memcpy(&real, &field.value, sizeof real);
            snprintf(digits, sizeof digits, "%.17g", real);
            status = add_text(d, a->key, digits, strlen(digits));
        } else if (IS_BYTES(&field, 1)) {
            status = add_text(d, a->key, (const char *)field.data, field.n);
        } else if (IS_NUMBER(&field, 8)) {
            if (!cpprof__otlp_string(d, field.value, &text))
                return cpprof__otlp_no_such(d, value, "string");
            if (text)
                status = add_label(
                    d, (struct pprof_label){.key = a->key, .text = text});
        } else if (IS_BYTES(&field, 7)) {
            status = add_hex(d, a->key, bytes_of(&field));
        } else if (IS_BYTES(&field, 6)) {
            status = add_map(d, a, bytes_of(&field), depth + 1);
        }
    }
    return status;
}

static enum cpprof_status
add_values(struct decoder *d, const struct attribute *a, unsigned depth)
{
    struct cpprof__reader r = reader(a->value), inner;
    enum cpprof_status status = add_value(d, a, a->value, depth);
    struct cpprof__field array, field;
    const char *error = NULL;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &array, &error)) {
        if (!IS_BYTES(&array, 5))
            continue;
        inner = cpprof__reader(array.data, array.n);
        while (status == CPPROF_OK &&
               cpprof__proto_next(&inner, &field, &error))
            if (IS_BYTES(&field, 1))
                status =
                    cpprof__otlp_is_message(bytes_of(&field))
                        ? add_value(d, a, bytes_of(&field), depth)
                        : cpprof__otlp_bad(d, field.data, "not enough data");
        if (status == CPPROF_OK && error)
            status = cpprof__otlp_bad(d, array.data, error);
    }
    return status;
}

/* "outer.inner" */
static uint32_t
key_in_map(struct decoder *d, uint32_t outer, struct bytes inner)
{
    struct cpprof__buffer key = {0};
    uint32_t string = CPPROF__NO_STRING;

    cpprof__buffer_printf(&key, "%s.",
                          cpprof__strings_text(&d->p->strings, outer));
    cpprof__buffer_append(&key, inner.data, inner.n);
    if (!key.failed)
        string =
            cpprof__strings_add(&d->p->strings, (const char *)key.data, key.n);
    cpprof__buffer_free(&key);
    return string;
}

/* A KeyValue of a map. */
static enum cpprof_status
add_pair(struct decoder *d, const struct attribute *a, struct bytes pair,
         unsigned depth)
{
    struct attribute one = {.unit = a->unit};
    struct cpprof__reader r = reader(pair);
    struct cpprof__field field;
    struct bytes key = {0};
    const char *error, *text;
    uint32_t number;

    if (!cpprof__otlp_is_message(pair))
        return cpprof__otlp_bad(d, pair.data, "not enough data");
    while (cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1)) {
            key = bytes_of(&field);
        } else if (IS_BYTES(&field, 2)) {
            one.value = bytes_of(&field);
        } else if (IS_NUMBER(&field, 3)) {
            if (!cpprof__otlp_string(d, field.value, &number))
                return cpprof__otlp_no_such(d, pair, "string");
            text = cpprof__strings_text(&d->p->strings, number);
            key = (struct bytes){(const uint8_t *)text, strlen(text)};
        }
    if (!cpprof__otlp_is_message(one.value))
        return cpprof__otlp_bad(d, pair.data, "not enough data");
    one.key = key_in_map(d, a->key, key);
    return one.key == CPPROF__NO_STRING ? cpprof__otlp_no_memory(d)
                                        : add_values(d, &one, depth);
}

/* Each value by the keys on the way to it: pprof's labels are flat. */
static enum cpprof_status
add_map(struct decoder *d, const struct attribute *a, struct bytes map,
        unsigned depth)
{
    struct cpprof__reader r = reader(map);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    if (depth > MOST_MAPS)
        return cpprof__otlp_bad(d, map.data, "a map in too many maps");
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1))
            status = add_pair(d, a, bytes_of(&field), depth);
    return error ? cpprof__otlp_bad(d, map.data, error) : status;
}

/* Labels of the first sample that has this attribute, which others have, too:
 * its value is walked over once. */
static enum cpprof_status
keep_labels(struct decoder *d, struct attribute *a, size_t from)
{
    size_t n = d->labels.n - from;

    if (!CPPROF__ARRAY_ROOM(&d->known_labels, n))
        return cpprof__otlp_no_memory(d);
    if (n)
        memcpy(d->known_labels.at + d->known_labels.n, d->labels.at + from,
               n * sizeof *d->labels.at);
    a->first_label = d->known_labels.n;
    a->n_labels = n;
    a->is_known = true;
    d->known_labels.n += n;
    return CPPROF_OK;
}

static enum cpprof_status
add_known(struct decoder *d, const struct attribute *a)
{
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < a->n_labels && status == CPPROF_OK; i++)
        status = add_label(d, d->known_labels.at[a->first_label + i]);
    return status;
}

static enum cpprof_status
sample_attribute(struct decoder *d, uint64_t number, void *ctx)
{
    const struct attribute *found;
    size_t from = d->labels.n;
    enum cpprof_status status;
    struct attribute a;

    (void)ctx;
    if (number < d->attributes.n && d->attributes.at[number].is_known)
        return add_known(d, &d->attributes.at[number]);
    status = cpprof__otlp_attribute_at(d, number, "sample", &found);
    if (status != CPPROF_OK)
        return status;
    a = *found;
    if (cpprof__otlp_has_key(d, &a, CPPROF__OTLP_THREAD_NAME))
        a.key = cpprof__strings_add_text(&d->p->strings, "thread");
    else if (cpprof__otlp_has_key(d, &a, CPPROF__OTLP_THREAD_ID))
        a.key = cpprof__strings_add_text(&d->p->strings, "tid");
    status = a.key == CPPROF__NO_STRING ? cpprof__otlp_no_memory(d)
                                        : add_values(d, &a, 0);
    return status == CPPROF_OK ? keep_labels(d, &d->attributes.at[number], from)
                               : status;
}

static enum cpprof_status
add_id(struct decoder *d, const char *key, struct bytes id)
{
    char text[65] = "";
    size_t i, n = id.n < 32 ? id.n : 32;

    for (i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", id.data[i]);
    return strspn(text, "0") == 2 * n
               ? CPPROF_OK
               : add_text(d, cpprof__strings_add_text(&d->p->strings, key),
                          text, 2 * n);
}

static enum cpprof_status
add_link(struct decoder *d, uint64_t number)
{
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__reader r;
    struct cpprof__field field;
    const char *error = NULL;

    if (!number)
        return CPPROF_OK;
    if (number >= d->links_at.n)
        return cpprof__otlp_bad(d, NULL, "no such link");
    status = cpprof__otlp_spend_walk(d, d->links_at.at[number].n);
    r = reader(d->links_at.at[number]);
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1))
            status = add_id(d, "trace_id", bytes_of(&field));
        else if (IS_BYTES(&field, 2))
            status = add_id(d, "span_id", bytes_of(&field));
    return error ? cpprof__otlp_bad(d, r.next, error) : status;
}

/* ----------------------------------------------------------- samples ---- */

struct values {
    uint64_t sum;
    size_t n;
};

static enum cpprof_status
count_value(struct decoder *d, uint64_t value, void *ctx)
{
    struct values *v = ctx;

    (void)d;
    v->sum += value;
    v->n++;
    return CPPROF_OK;
}

/* One number, or one for each timestamp; or timestamps alone. */
static enum cpprof_status
row_value(struct decoder *d, struct bytes message, const struct values *values,
          size_t n_times, int64_t *value)
{
    if (values->n && n_times && values->n != n_times)
        return cpprof__otlp_bad(d, message.data,
                                "not a value for each timestamp");
    if (values->n > 1 && !n_times)
        return cpprof__otlp_bad(d, message.data, "a sample of several values");
    if (!values->n && !n_times)
        return cpprof__otlp_bad(d, message.data, "a sample without a value");
    *value = (int64_t)(values->n ? values->sum : n_times);
    return CPPROF_OK;
}

enum cpprof_status
cpprof__otlp_read_row(struct decoder *d, struct bytes message, struct row *row)
{
    struct cpprof__reader r = reader(message);
    enum cpprof_status status = CPPROF_OK;
    struct values values = {0};
    uint64_t stack = 0, link = 0;
    struct cpprof__field field;
    const char *error = NULL;
    size_t n_times = 0;

    d->labels.n = 0;
    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (IS_NUMBER(&field, 1))
            stack = field.value;
        else if (field.number == 2)
            status =
                cpprof__otlp_each_number(d, &field, sample_attribute, NULL);
        else if (IS_NUMBER(&field, 3))
            link = field.value;
        else if (field.number == 4)
            status = cpprof__otlp_each_number(d, &field, count_value, &values);
        else if (field.number == 5 && field.wire == CPPROF__WIRE_BYTES &&
                 field.n % 8)
            status = cpprof__otlp_bad(d, field.data, "half a timestamp");
        else if (field.number == 5)
            n_times += field.wire == CPPROF__WIRE_BYTES ? field.n / 8 : 1;
    if (error)
        return cpprof__otlp_bad(d, r.next, error);
    if (status == CPPROF_OK)
        status = add_link(d, link);
    if (status == CPPROF_OK && d->service)
        status = add_label(
            d, (struct pprof_label){.key = cpprof__strings_add_text(
                                        &d->p->strings, CPPROF__OTLP_SERVICE),
                                    .text = d->service});
    if (status == CPPROF_OK && stack && stack >= d->stacks_at.n)
        status = cpprof__otlp_no_such(d, message, "stack");
    if (status != CPPROF_OK)
        return status;
    row->stack = (uint32_t)stack;
    row->labels = cpprof__label_sets_add(&d->p->labels, &d->p->strings,
                                         d->labels.at, d->labels.n);
    return row->labels == CPPROF__NO_LABEL_SET
               ? cpprof__otlp_no_memory(d)
               : row_value(d, message, &values, n_times, &row->value);
}

static enum cpprof_status
add_frame(struct decoder *d, uint64_t location, void *ctx)
{
    struct cpprof__sample *s = ctx;
    uint32_t *frame;

    if (location > d->p->locations.n)
        return cpprof__otlp_bad(d, NULL, "no such location");
    if (!location)
        return cpprof__otlp_spend(d, JUNK_COST);
    if (cpprof__otlp_spend(d, sizeof *frame) != CPPROF_OK)
        return CPPROF_LIMIT;
    frame = CPPROF__ARRAY_ADD(&d->p->frames);
    if (!frame)
        return cpprof__otlp_no_memory(d);
    *frame = (uint32_t)location - 1;
    s->n_frames++;
    return CPPROF_OK;
}

enum cpprof_status
cpprof__otlp_add_sample(struct decoder *d, const struct row *row, size_t type)
{
    struct cpprof__sample s = {.first_frame = d->p->frames.n,
                               .labels = row->labels};
    size_t n_types = d->p->sample_types.n;
    enum cpprof_status status =
        cpprof__otlp_spend(d, sizeof s + n_types * sizeof(int64_t));
    struct cpprof__reader r = row->stack ? reader(d->stacks_at.at[row->stack])
                                         : cpprof__reader(NULL, 0);
    struct cpprof__field field;
    const char *error = NULL;

    while (status == CPPROF_OK && cpprof__proto_next(&r, &field, &error))
        if (field.number == 1)
            status = cpprof__otlp_each_number(d, &field, add_frame, &s);
        else
            status = cpprof__otlp_spend(d, JUNK_COST);
    if (error)
        return cpprof__otlp_bad(d, r.next, error);
    if (status != CPPROF_OK)
        return status;
    if (!CPPROF__ARRAY_ROOM(&d->p->samples, 1) ||
        !CPPROF__ARRAY_ROOM(&d->p->values, n_types))
        return cpprof__otlp_no_memory(d);
    memset(d->p->values.at + d->p->values.n, 0, n_types * sizeof(int64_t));
    d->p->values.at[d->p->values.n + type] = row->value;
    d->p->values.n += n_types;
    d->p->samples.at[d->p->samples.n++] = s;
    return CPPROF_OK;
}
