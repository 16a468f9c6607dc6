/* SPDX-License-Identifier: MIT */
/*
 * The second walk: samples. Nearly all of a file's bytes are the location ids
 * of samples, so this is where its time goes: their varints are decoded
 * straight into `frames` (varints.c) and turned into indices there.
 */
#include "profile/proto/decode_internal.h"

#include "base/status.h"
#include "profile/proto/varints.h"

#include <sys/mman.h>

/* Bytes to read before giving them back: seldom enough that the system calls
 * do not count, small beside what is worth giving back. */
#define RELEASE_BYTES ((size_t)1 << 20)
#define PAGE_BYTES    ((uintptr_t)4096)

/* cpprof__proto_next(), with the fields of a sample inline. */
static inline bool
next_field(struct cpprof__reader *r, struct cpprof__field *field,
           const char **error)
{
    struct cpprof__reader rest = *r;
    uint64_t value;
    uint8_t tag;

    if (r->next == r->end || *r->next >= 0x80)
        return cpprof__proto_next(r, field, error);
    tag = *rest.next++;
    value = cpprof__read_varint(&rest);
    field->number = tag >> 3;
    field->wire = (enum cpprof__wire)(tag & 7);
    field->value = value;
    if (field->wire == CPPROF__WIRE_BYTES &&
        value <= cpprof__reader_left(&rest)) {
        field->data = rest.next;
        field->n = value;
        rest.next += value;
    } else if (field->wire != CPPROF__WIRE_VARINT) {
        rest.bad = true;
    }
    if (rest.bad)
        return cpprof__proto_next(r, field, error);
    *r = rest;
    return true;
}

/* Give whole pages before `next` back to the system. */
static void
release(struct decoder *d, const uint8_t *next)
{
    uintptr_t from, to;

    if (!d->released || (size_t)(next - d->released) < RELEASE_BYTES)
        return;
    from = ((uintptr_t)d->released + PAGE_BYTES - 1) & -PAGE_BYTES;
    to = (uintptr_t)next & -PAGE_BYTES;
    /* Where pages are larger than PAGE_BYTES this fails, and nothing is lost
     * but memory. */
    madvise((void *)from, to - from, MADV_DONTNEED);
    d->released = (uint8_t *)to;
}

static enum cpprof_status
nil_location(struct decoder *d)
{
    return cpprof__fail(d->error, CPPROF_BAD_DATA, 0,
                        "malformed profile: sample has nil location");
}

/* Ids that are decoded, to indices in place; false if one is of no location. */
static bool
to_indices(const struct decoder *d, uint32_t *frames, size_t n)
{
    uint32_t missing = 0;
    size_t i;

    if (d->ids_count_from_1) {
        for (i = 0; i < n; i++) {
            frames[i] -= 1;
            missing |= frames[i] >= d->p->locations.n;
        }
        return !missing;
    }
    for (i = 0; i < n; i++) {
        frames[i] = cpprof__id_map_get(&d->locations, frames[i]);
        missing |= frames[i] == CPPROF__NO_INDEX;
    }
    return !missing;
}

static enum cpprof_status
add_frame(struct decoder *d, uint64_t id)
{
    uint32_t index = cpprof__id_map_get(&d->locations, id);

    if (index == CPPROF__NO_INDEX)
        return nil_location(d);
    if (!CPPROF__ARRAY_ROOM(&d->p->frames, 1))
        return cpprof__fail_nomem(d->error);
    d->p->frames.at[d->p->frames.n++] = index;
    return CPPROF_OK;
}

/* The location ids of a packed field, one by one. */
static enum cpprof_status
add_any_frames(struct decoder *d, const struct cpprof__field *field)
{
    struct cpprof__reader r = cpprof__reader(field->data, field->n);
    enum cpprof_status status = CPPROF_OK;

    while (status == CPPROF_OK && r.next < r.end) {
        uint64_t id = cpprof__read_varint(&r);

        status = r.bad ? cpprof__decode_bad(d, field->data, "bad varint")
                       : add_frame(d, id);
    }
    return status;
}

/* The location ids of a packed field, to the end of frames. */
static enum cpprof_status
add_frames(struct decoder *d, const struct cpprof__field *field)
{
    uint32_t *frames;
    size_t n;

    if (!CPPROF__ARRAY_ROOM(&d->p->frames, field->n + CPPROF__VARINTS_SLACK))
        return cpprof__fail_nomem(d->error);
    frames = d->p->frames.at + d->p->frames.n;
    n = cpprof__varints(field->data, field->n, frames);
    if (n == SIZE_MAX)
        return add_any_frames(d, field);
    if (!to_indices(d, frames, n))
        return nil_location(d);
    d->p->frames.n += n;
    return CPPROF_OK;
}

/* There is room for n_sample_types values; more are only counted. */
static void
add_value(struct decoder *d, uint64_t value, size_t *n_values)
{
    if (*n_values < d->p->sample_types.n)
        d->p->values.at[d->p->values.n + *n_values] = (int64_t)value;
    ++*n_values;
}

static enum cpprof_status
add_values(struct decoder *d, const struct cpprof__field *field,
           size_t *n_values)
{
    struct cpprof__reader r = cpprof__reader(field->data, field->n);

    while (r.next < r.end)
        add_value(d, cpprof__read_varint(&r), n_values);
    return r.bad ? cpprof__decode_bad(d, field->data, "bad varint") : CPPROF_OK;
}

/* The scalars of a label as the file has them. */
struct raw_label {
    uint64_t key, text, num, unit;
};

static enum cpprof_status
read_label(struct decoder *d, const struct cpprof__field *message,
           struct raw_label *raw)
{
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    struct cpprof__field field;
    const char *error = NULL;

    while (next_field(&r, &field, &error)) {
        if (field.number < 1 || field.number > 4)
            continue;
        if (field.wire != CPPROF__WIRE_VARINT)
            return cpprof__decode_bad(d, r.next, "type mismatch");
        if (field.number == 1)
            raw->key = field.value;
        else if (field.number == 2)
            raw->text = field.value;
        else if (field.number == 3)
            raw->num = field.value;
        else
            raw->unit = field.value;
    }
    return error ? cpprof__decode_bad(d, r.next, error) : CPPROF_OK;
}

/* A label without text, number and unit is dropped. */
static enum cpprof_status
add_label(struct decoder *d, const struct cpprof__field *message)
{
    struct raw_label raw = {0, 0, 0, 0};
    struct pprof_label label = {0};
    enum cpprof_status status = read_label(d, message, &raw);

    if (status != CPPROF_OK)
        return status;
    label.key = cpprof__string_ref(raw.key);
    label.kind = raw.text ? PPROF_LABEL_TEXT : PPROF_LABEL_NUMBER;
    if (raw.text)
        label.text = cpprof__string_ref(raw.text);
    else
        label.unit = cpprof__string_ref(raw.unit);
    if (!raw.text)
        label.num = (int64_t)raw.num;
    if (!cpprof__link_string(d, &label.key) ||
        !cpprof__link_string(d, &label.text) ||
        !cpprof__link_string(d, &label.unit))
        return cpprof__decode_bad(d, message->data, "malformed profile format");
    if (!raw.text && !raw.num && !raw.unit)
        return CPPROF_OK;
    if (!CPPROF__ARRAY_ROOM(&d->sample_labels, 1))
        return cpprof__fail_nomem(d->error);
    d->sample_labels.at[d->sample_labels.n++] = label;
    return CPPROF_OK;
}

static enum cpprof_status
sample_field(struct decoder *d, const struct cpprof__field *field,
             const uint8_t *at, size_t *n_values)
{
    bool number = field->wire == CPPROF__WIRE_VARINT;

    if (field->number < 1 || field->number > 3)
        return CPPROF_OK;
    if (field->wire != CPPROF__WIRE_BYTES && (!number || field->number == 3))
        return cpprof__decode_bad(d, at, "type mismatch");
    switch (field->number) {
    case 1:
        return number ? add_frame(d, field->value) : add_frames(d, field);
    case 2:
        if (!number)
            return add_values(d, field, n_values);
        add_value(d, field->value, n_values);
        return CPPROF_OK;
    default:
        return add_label(d, field);
    }
}

/* Turn the parts that were read into a sample. */
static enum cpprof_status
finish_sample(struct decoder *d, size_t first_frame, size_t n_values)
{
    struct pprof_profile *p = d->p;
    struct cpprof__sample *sample;
    uint32_t labels = 0;

    if (n_values != p->sample_types.n)
        return cpprof__fail(d->error, CPPROF_BAD_DATA, 0,
                            "malformed profile: mismatch: sample has %zu "
                            "values vs. %zu types",
                            n_values, p->sample_types.n);
    if (p->frames.n - first_frame > UINT32_MAX)
        return cpprof__fail(d->error, CPPROF_LIMIT, 0,
                            "parsing profile: a stack of %zu frames",
                            p->frames.n - first_frame);
    if (d->sample_labels.n)
        labels = cpprof__label_sets_add(
            &p->labels, &p->strings, d->sample_labels.at, d->sample_labels.n);
    if (labels == CPPROF__NO_LABEL_SET)
        return cpprof__fail_nomem(d->error);
    sample = &p->samples.at[p->samples.n++];
    sample->first_frame = first_frame;
    sample->n_frames = (uint32_t)(p->frames.n - first_frame);
    sample->labels = labels;
    p->values.n += n_values;
    return CPPROF_OK;
}

static enum cpprof_status
decode_sample(struct decoder *d, const struct cpprof__field *message)
{
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    size_t first_frame = d->p->frames.n, n_values = 0;
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    if (!CPPROF__ARRAY_ROOM(&d->p->values, d->p->sample_types.n))
        return cpprof__fail_nomem(d->error);
    d->sample_labels.n = 0;
    while (status == CPPROF_OK && next_field(&r, &field, &error))
        status = sample_field(d, &field, r.next, &n_values);
    if (error)
        return cpprof__decode_bad(d, r.next, error);
    return status == CPPROF_OK ? finish_sample(d, first_frame, n_values)
                               : status;
}

/* Is the id of every location its index + 1, as most writers have it? */
static bool
count_from_1(const struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->locations.n; i++)
        if (p->locations.at[i].id != i + 1)
            return false;
    return true;
}

enum cpprof_status
cpprof__decode_samples(struct decoder *d)
{
    size_t n = (size_t)(d->samples_end - d->samples_begin);
    struct cpprof__reader r = cpprof__reader(d->samples_begin, n);
    enum cpprof_status status = CPPROF_OK;
    struct cpprof__field field;
    const char *error = NULL;

    if (d->n_samples && !d->p->sample_types.n)
        return cpprof__fail(d->error, CPPROF_BAD_DATA, 0,
                            "malformed profile: missing sample type "
                            "information");
    if (!CPPROF__ARRAY_ROOM(&d->p->samples, d->n_samples))
        return cpprof__fail_nomem(d->error);
    d->ids_count_from_1 = count_from_1(d->p);
    while (status == CPPROF_OK && next_field(&r, &field, &error)) {
        if (field.number == 2)
            status = decode_sample(d, &field);
        release(d, r.next);
    }
    CPPROF__ARRAY_TRIM(&d->p->samples);
    CPPROF__ARRAY_TRIM(&d->p->values);
    CPPROF__ARRAY_TRIM(&d->p->frames);
    return status;
}
