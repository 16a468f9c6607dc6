/* SPDX-License-Identifier: MIT */
/*
 * What all parts of the decoder do with fields: numbers, strings, attributes,
 * what is wrong with them.
 */
#include "profile/otlp/decode_internal.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Of what samples refer to: a walk over so many bytes is free, and each byte of
 * a longer one costs what so many of a profile do. */
#define USUAL_BYTES 64
#define WALK_COST   16

enum cpprof_status
cpprof__otlp_bad(struct decoder *d, const uint8_t *at, const char *what)
{
    return cpprof__fail_at(d->error, at ? (uint64_t)(at - d->data) : 0,
                           "parsing profile: OTLP: %s", what);
}

enum cpprof_status
cpprof__otlp_no_memory(struct decoder *d)
{
    return cpprof__fail_nomem(d->error);
}

/* The field of a message that is a number; the last one counts. */
uint64_t
cpprof__otlp_number_of(struct bytes message, uint32_t number)
{
    struct cpprof__reader r = reader(message);
    struct cpprof__field field;
    const char *error;
    uint64_t value = 0;

    while (cpprof__proto_next(&r, &field, &error))
        if (IS_NUMBER(&field, number))
            value = field.value;
    return value;
}

/* Is it a run of fields? Then those who walk over it later need not ask. */
bool
cpprof__otlp_is_message(struct bytes message)
{
    struct cpprof__reader r = reader(message);
    struct cpprof__field field;
    const char *error;

    while (cpprof__proto_next(&r, &field, &error)) {
    }
    return !error;
}

/* Do for each number of a repeated field, packed or not. */
enum cpprof_status
cpprof__otlp_each_number(struct decoder *d, const struct cpprof__field *field,
                         enum cpprof_status (*use)(struct decoder *d,
                                                   uint64_t value, void *ctx),
                         void *ctx)
{
    struct cpprof__reader r = cpprof__reader(field->data, field->n);
    enum cpprof_status status = CPPROF_OK;

    if (field->wire == CPPROF__WIRE_VARINT)
        return use(d, field->value, ctx);
    if (field->wire != CPPROF__WIRE_BYTES)
        return cpprof__otlp_bad(d, field->data, "type mismatch");
    while (status == CPPROF_OK && r.next < r.end) {
        uint64_t value = cpprof__read_varint(&r);

        status = r.bad ? cpprof__otlp_bad(d, field->data, "bad varint")
                       : use(d, value, ctx);
    }
    return status;
}

bool
cpprof__otlp_string(struct decoder *d, uint64_t number, uint32_t *found)
{
    if (number >= d->strings.n)
        return false;
    *found = d->strings.at[number];
    return true;
}

enum cpprof_status
cpprof__otlp_no_such(struct decoder *d, struct bytes at, const char *what)
{
    char text[64];

    snprintf(text, sizeof text, "no such %s", what);
    return cpprof__otlp_bad(d, at.data, text);
}

enum cpprof_status
cpprof__otlp_attribute_at(struct decoder *d, uint64_t number, const char *whose,
                          const struct attribute **found)
{
    char text[64];

    if (number >= d->attributes.n) {
        snprintf(text, sizeof text, "no such attribute of a %s", whose);
        return cpprof__otlp_bad(d, NULL, text);
    }
    *found = &d->attributes.at[number];
    return cpprof__otlp_spend_walk(d, (*found)->value.n);
}

bool
cpprof__otlp_has_key(const struct decoder *d, const struct attribute *a,
                     const char *key)
{
    return strcmp(cpprof__strings_text(&d->p->strings, a->key), key) == 0;
}

/* The value of AnyValue as a string of the model; false: it is something else.
 */
bool
cpprof__otlp_text_of(struct decoder *d, struct bytes value, uint32_t *text)
{
    struct cpprof__reader r = reader(value);
    struct cpprof__field field;
    const char *error;
    bool found = false;

    while (cpprof__proto_next(&r, &field, &error))
        if (IS_BYTES(&field, 1)) {
            uint32_t added = cpprof__strings_add(
                &d->p->strings, (const char *)field.data, field.n);

            found = added != CPPROF__NO_STRING;
            *text = found ? added : *text;
        } else if (IS_NUMBER(&field, 8)) {
            found = cpprof__otlp_string(d, field.value, text);
        }
    return found;
}

enum cpprof_status
cpprof__otlp_spend(struct decoder *d, uint64_t n)
{
    if (n > d->left)
        return cpprof__fail(d->error, CPPROF_LIMIT, 0,
                            "parsing profile: OTLP: its stacks are larger than "
                            "the file may be");
    d->left -= n;
    return CPPROF_OK;
}

/* A number of one byte may refer to something of a million, and so may the next
 * one. What is as small as what is usual is no dearer than the number. */
enum cpprof_status
cpprof__otlp_spend_walk(struct decoder *d, size_t n)
{
    return n <= USUAL_BYTES ? CPPROF_OK
                            : cpprof__otlp_spend(d, (uint64_t)n * WALK_COST);
}
