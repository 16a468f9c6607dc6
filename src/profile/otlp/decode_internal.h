/* SPDX-License-Identifier: MIT */
/* What the parts of the decoder share. */
#ifndef PROFILE_OTLP_DECODE_INTERNAL_H
#define PROFILE_OTLP_DECODE_INTERNAL_H

#include "base/proto.h"
#include "profile/otlp/otlp.h"

struct bytes {
    const uint8_t *data;
    size_t n;
};
typedef CPPROF__ARRAY(struct bytes) bytes_table;

/* An attribute: the value is an AnyValue. */
struct attribute {
    uint32_t key, unit; /* strings of the model */
    struct bytes value;
    /* In known_labels, what it is as labels of a sample. */
    bool is_known;
    size_t first_label, n_labels;
};

/* What a sample says, as numbers of the file. */
struct row {
    uint32_t stack;
    uint32_t labels; /* set of the model */
    int64_t value;
};

struct decoder {
    struct pprof_profile *p;
    struct cpprof_error *error;
    const uint8_t *data;
    uint64_t left; /* bytes that stacks and values may still take */

    bytes_table strings_at, attributes_at, mappings_at, locations_at,
        functions_at, links_at, stacks_at, resources;
    CPPROF__ARRAY(uint32_t) strings; /* of the file: the model's */
    CPPROF__ARRAY(struct attribute) attributes;
    CPPROF__ARRAY(struct pprof_label) known_labels;
    bool many_resources;

    /* One sample, and the rows that its scope has begun with. */
    CPPROF__ARRAY(struct pprof_label) labels;
    CPPROF__ARRAY(struct row) first_rows;
    size_t first_sample; /* of those */
    uint32_t service;    /* string; the resource's name, where it counts */
    bool has_head;
};

/* Begin to walk over a message. */
static inline struct cpprof__reader
reader(struct bytes message)
{
    return cpprof__reader(message.data, message.n);
}

static inline struct bytes
bytes_of(const struct cpprof__field *field)
{
    return (struct bytes){field->data, field->n};
}

static inline bool
is(const struct cpprof__field *field, uint32_t number, enum cpprof__wire wire)
{
    return field->number == number && field->wire == wire;
}

#define IS_NUMBER(field, n) is(field, n, CPPROF__WIRE_VARINT)
#define IS_BYTES(field, n)  is(field, n, CPPROF__WIRE_BYTES)

enum cpprof_status
cpprof__otlp_bad(struct decoder *d, const uint8_t *at, const char *what);
enum cpprof_status
cpprof__otlp_no_memory(struct decoder *d);
/* The field of a message that is a number; the last one counts. */
uint64_t
cpprof__otlp_number_of(struct bytes message, uint32_t number);
/* Is it a run of fields? Then those who walk over it later need not ask. */
bool
cpprof__otlp_is_message(struct bytes message);
/* Do for each number of a repeated field, packed or not. */
enum cpprof_status
cpprof__otlp_each_number(struct decoder *d, const struct cpprof__field *field,
                         enum cpprof_status (*use)(struct decoder *d,
                                                   uint64_t value, void *ctx),
                         void *ctx);
bool
cpprof__otlp_string(struct decoder *d, uint64_t number, uint32_t *found);
enum cpprof_status
cpprof__otlp_no_such(struct decoder *d, struct bytes at, const char *what);
/* Find the attribute of a number in the file; whose: for the message. */
enum cpprof_status
cpprof__otlp_attribute_at(struct decoder *d, uint64_t number, const char *whose,
                          const struct attribute **found);
bool
cpprof__otlp_has_key(const struct decoder *d, const struct attribute *a,
                     const char *key);
/* The value of AnyValue as a string of the model; false: it is something else.
 */
bool
cpprof__otlp_text_of(struct decoder *d, struct bytes value, uint32_t *text);
/* Take so much out of what the profile may need. */
enum cpprof_status
cpprof__otlp_spend(struct decoder *d, uint64_t n);
/* Pay for n bytes that are walked over because something refers to them. */
enum cpprof_status
cpprof__otlp_spend_walk(struct decoder *d, size_t n);
/* Sort the fields of a dictionary into tables. */
enum cpprof_status
cpprof__otlp_split_dictionary(struct decoder *d, struct bytes message);
enum cpprof_status
cpprof__otlp_read_dictionary(struct decoder *d);
enum cpprof_status
cpprof__otlp_read_row(struct decoder *d, struct bytes message, struct row *row);
enum cpprof_status
cpprof__otlp_add_sample(struct decoder *d, const struct row *row, size_t type);

#endif
