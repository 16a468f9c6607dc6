/* SPDX-License-Identifier: MIT */
/*
 * Two passes over the message: the first keeps each record's bytes in an array
 * of its kind, the second resolves ids and strings, when all of them are known.
 * Ids are dense in what cpprof writes, so tables by id are plain arrays; an id
 * far outside is taken for a broken file.
 */
#include "profile.h"
#include "tap.h"

#include "base/buffer.h"
#include "base/gzip.h"
#include "base/proto.h"
#include "profile/gunzip.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE  ((size_t)1 << 30)
#define MAX_ID    10000000u
#define MAX_LINES 4096

/* The bytes of one record. */
struct piece {
    const uint8_t *data;
    size_t n;
};
struct pieces {
    struct piece *at;
    size_t n;
    size_t capacity;
};

struct function {
    bool there;
    const char *name, *system, *file;
    int64_t start_line;
};
struct location {
    bool there;
    size_t n_lines;
    struct frame *lines;
};

struct decoder {
    struct profile *p;
    struct pieces strings, samples, mappings, locations, functions, comments,
        types;
    struct piece period_type;
    const char **text; /* the string table, terminated copies */
    struct function *function;
    uint64_t max_function;
    struct location *location;
    uint64_t max_location;
    size_t *mapping_index; /* by id: index + 1, 0 for none */
    uint64_t max_mapping;
    uint64_t n_times;
    char *why;
    size_t why_size;
    jmp_buf failed;
};

static void __attribute__((noreturn, format(printf, 2, 3)))
fail(struct decoder *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(d->why, d->why_size, format, args);
    va_end(args);
    longjmp(d->failed, 1);
}

static void *
take(struct decoder *d, size_t n)
{
    void *p = cpprof__arena_alloc(&d->p->arena, n ? n : 1);

    if (!p)
        fail(d, "out of memory");
    return memset(p, 0, n);
}

static void
keep(struct decoder *d, struct pieces *list, const struct cpprof__field *field)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct piece *at = realloc(list->at, capacity * sizeof *at);

        if (!at)
            fail(d, "out of memory");
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->n++] = (struct piece){field->data, field->n};
}

/* The next field of a record; false at its end. */
static bool
next(struct decoder *d, struct cpprof__reader *r, struct cpprof__field *field)
{
    const char *error = NULL;

    if (cpprof__proto_next(r, field, &error))
        return true;
    if (error)
        fail(d, "broken wire format: %s", error);
    return false;
}

static const char *
text_of(struct decoder *d, uint64_t index)
{
    if (index >= d->strings.n)
        fail(d, "string %llu of %zu", (unsigned long long)index, d->strings.n);
    return d->text[index];
}

/* --- numbers, packed or not ------------------------------------------------
 */

static size_t
count_numbers(struct decoder *d, const struct cpprof__field *field)
{
    struct cpprof__reader r = cpprof__reader(field->data, field->n);
    size_t n = 0;

    if (field->wire == CPPROF__WIRE_VARINT)
        return 1;
    while (cpprof__reader_left(&r)) {
        cpprof__read_varint(&r);
        n++;
    }
    if (r.bad)
        fail(d, "broken packed field %u", field->number);
    return n;
}

static size_t
put_numbers(const struct cpprof__field *field, uint64_t *out)
{
    struct cpprof__reader r = cpprof__reader(field->data, field->n);
    size_t n = 0;

    if (field->wire == CPPROF__WIRE_VARINT) {
        out[0] = field->value;
        return 1;
    }
    while (cpprof__reader_left(&r))
        out[n++] = cpprof__read_varint(&r);
    return n;
}

/* All numbers of one repeated field of a record. */
static uint64_t *
numbers(struct decoder *d, struct piece piece, uint32_t number, size_t *n)
{
    struct cpprof__reader r = cpprof__reader(piece.data, piece.n);
    struct cpprof__reader again = r;
    struct cpprof__field field;
    uint64_t *out;
    size_t at = 0;

    *n = 0;
    while (next(d, &r, &field))
        *n += field.number == number ? count_numbers(d, &field) : 0;
    out = take(d, *n * sizeof *out);
    while (next(d, &again, &field))
        at += field.number == number ? put_numbers(&field, out + at) : 0;
    return out;
}

/* The numbers of a record with at most 12 fields, none repeated. */
static void
scalars(struct decoder *d, struct piece piece, uint64_t values[13])
{
    struct cpprof__reader r = cpprof__reader(piece.data, piece.n);
    struct cpprof__field field;

    memset(values, 0, 13 * sizeof values[0]);
    while (next(d, &r, &field))
        if (field.number <= 12 && field.wire == CPPROF__WIRE_VARINT)
            values[field.number] = field.value;
}

/* --- first pass ------------------------------------------------------------
 */

static void
top_scalar(struct decoder *d, const struct cpprof__field *field)
{
    struct profile *p = d->p;

    switch (field->number) {
    case 9:
        p->time_ns = (int64_t)field->value;
        d->n_times++;
        break;
    case 10:
        p->duration_ns = (int64_t)field->value;
        break;
    case 12:
        p->period = (int64_t)field->value;
        break;
    }
}

static struct pieces *
list_of(struct decoder *d, uint32_t number)
{
    switch (number) {
    case 1:
        return &d->types;
    case 2:
        return &d->samples;
    case 3:
        return &d->mappings;
    case 4:
        return &d->locations;
    case 5:
        return &d->functions;
    case 6:
        return &d->strings;
    case 13:
        return &d->comments;
    }
    return NULL;
}

static void
first_pass(struct decoder *d, const void *data, size_t n)
{
    struct cpprof__reader r = cpprof__reader(data, n);
    struct cpprof__field field;

    while (next(d, &r, &field)) {
        struct pieces *list = list_of(d, field.number);

        if (list && (field.wire == CPPROF__WIRE_BYTES || field.number == 13))
            keep(d, list, &field);
        else if (field.number == 11)
            d->period_type = (struct piece){field.data, field.n};
        else if (field.wire == CPPROF__WIRE_VARINT)
            top_scalar(d, &field);
    }
}

/* --- second pass -----------------------------------------------------------
 */

static void
read_strings(struct decoder *d)
{
    size_t i;

    d->text = take(d, d->strings.n * sizeof *d->text);
    for (i = 0; i < d->strings.n; i++) {
        struct piece s = d->strings.at[i];

        d->text[i] =
            cpprof__arena_copy(&d->p->arena, (const char *)s.data, s.n);
        if (!d->text[i])
            fail(d, "out of memory");
    }
    if (d->strings.n == 0 || d->text[0][0])
        fail(d, "string 0 is not empty");
}

static struct value_type
read_type(struct decoder *d, struct piece piece)
{
    uint64_t v[13];

    scalars(d, piece, v);
    return (struct value_type){text_of(d, v[1]), text_of(d, v[2])};
}

static void
read_types(struct decoder *d)
{
    size_t i;

    if (d->types.n != 1 && d->types.n != 2 && d->types.n != 4)
        fail(d, "%zu sample types, want 1, 2 or 4", d->types.n);
    for (i = 0; i < d->types.n; i++)
        d->p->types[i] = read_type(d, d->types.at[i]);
    d->p->n_types = d->types.n;
    if (d->period_type.n)
        d->p->period_type = read_type(d, d->period_type);
}

static uint64_t
largest_id(struct decoder *d, const struct pieces *list, const char *kind)
{
    uint64_t max = 0;
    uint64_t v[13];
    size_t i;

    for (i = 0; i < list->n; i++) {
        scalars(d, list->at[i], v);
        if (v[1] == 0 || v[1] > MAX_ID)
            fail(d, "%s with id %llu", kind, (unsigned long long)v[1]);
        max = v[1] > max ? v[1] : max;
    }
    return max;
}

static void
read_mappings(struct decoder *d)
{
    struct profile *p = d->p;
    size_t i;

    p->n_mappings = d->mappings.n;
    p->mappings = take(d, p->n_mappings * sizeof *p->mappings);
    d->max_mapping = largest_id(d, &d->mappings, "mapping");
    d->mapping_index = take(d, (d->max_mapping + 1) * sizeof *d->mapping_index);
    for (i = 0; i < p->n_mappings; i++) {
        uint64_t v[13];

        scalars(d, d->mappings.at[i], v);
        if (d->mapping_index[v[1]])
            fail(d, "two mappings with id %llu", (unsigned long long)v[1]);
        d->mapping_index[v[1]] = i + 1;
        p->mappings[i] = (struct mapping){
            v[2],      v[3],      v[4],      text_of(d, v[5]), text_of(d, v[6]),
            v[7] != 0, v[8] != 0, v[9] != 0, v[10] != 0};
    }
}

static void
read_functions(struct decoder *d)
{
    size_t i;

    d->max_function = largest_id(d, &d->functions, "function");
    d->function = take(d, (d->max_function + 1) * sizeof *d->function);
    for (i = 0; i < d->functions.n; i++) {
        uint64_t v[13];

        scalars(d, d->functions.at[i], v);
        if (d->function[v[1]].there)
            fail(d, "two functions with id %llu", (unsigned long long)v[1]);
        d->function[v[1]] =
            (struct function){true, text_of(d, v[2]), text_of(d, v[3]),
                              text_of(d, v[4]), (int64_t)v[5]};
    }
}

static void
read_line(struct decoder *d, struct piece piece, struct frame *frame)
{
    const struct function *f;
    uint64_t v[13];

    scalars(d, piece, v);
    if (v[1] > d->max_function || !d->function[v[1]].there)
        fail(d, "line without function %llu", (unsigned long long)v[1]);
    f = &d->function[v[1]];
    frame->name = f->name;
    frame->system = f->system;
    frame->file = f->file;
    frame->start_line = f->start_line;
    frame->line = (int64_t)v[2];
}

/* A location without lines is one frame without a name. */
static void
read_location(struct decoder *d, struct piece piece)
{
    struct cpprof__reader r = cpprof__reader(piece.data, piece.n);
    struct cpprof__field field;
    struct piece lines[MAX_LINES];
    struct frame frame = {.name = "", .system = "", .file = ""};
    struct location *l;
    uint64_t v[13];
    size_t n = 0;
    size_t i;

    scalars(d, piece, v);
    if (v[2] > d->max_mapping || (v[2] && !d->mapping_index[v[2]]))
        fail(d, "location without mapping %llu", (unsigned long long)v[2]);
    frame.location = v[1];
    frame.address = v[3];
    frame.mapping = v[2] ? d->mapping_index[v[2]] - 1 : NO_MAPPING;
    l = &d->location[v[1]];
    if (l->there)
        fail(d, "two locations with id %llu", (unsigned long long)v[1]);
    while (next(d, &r, &field))
        if (field.number == 4 && n < MAX_LINES)
            lines[n++] = (struct piece){field.data, field.n};
    l->there = true;
    l->n_lines = n ? n : 1;
    l->lines = take(d, l->n_lines * sizeof *l->lines);
    for (i = 0; i < l->n_lines; i++) {
        l->lines[i] = frame;
        if (n)
            read_line(d, lines[i], &l->lines[i]);
    }
}

/* An address lies in the mapping that the location names; interpreted code has
 * neither. */
static void
check_address(struct decoder *d, const struct frame *f)
{
    const struct mapping *m;

    if (f->mapping == NO_MAPPING)
        return;
    m = &d->p->mappings[f->mapping];
    if (!f->address && !m->limit)
        return;
    if (f->address < m->start || f->address >= m->limit)
        fail(d, "address %llx outside its mapping %s",
             (unsigned long long)f->address, m->file);
}

static void
read_locations(struct decoder *d)
{
    size_t i;

    d->max_location = largest_id(d, &d->locations, "location");
    d->location = take(d, (d->max_location + 1) * sizeof *d->location);
    for (i = 0; i < d->locations.n; i++)
        read_location(d, d->locations.at[i]);
    for (i = 1; i <= d->max_location; i++)
        if (d->location[i].there)
            check_address(d, &d->location[i].lines[0]);
    d->p->n_locations = d->locations.n;
}

static void
expand(struct decoder *d, struct sample *s, const uint64_t *ids, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (ids[i] > d->max_location || !d->location[ids[i]].there)
            fail(d, "sample without location %llu", (unsigned long long)ids[i]);
        s->n_frames += d->location[ids[i]].n_lines;
    }
    s->frames = take(d, s->n_frames * sizeof *s->frames);
    s->n_frames = 0;
    for (i = 0; i < n; i++) {
        const struct location *l = &d->location[ids[i]];

        memcpy(s->frames + s->n_frames, l->lines,
               l->n_lines * sizeof *l->lines);
        s->n_frames += l->n_lines;
    }
}

static void
read_labels(struct decoder *d, struct piece piece, struct sample *s)
{
    struct cpprof__reader r = cpprof__reader(piece.data, piece.n);
    struct cpprof__reader again = r;
    struct cpprof__field field;
    size_t n = 0;

    while (next(d, &r, &field))
        n += field.number == 3;
    s->labels = take(d, n * sizeof *s->labels);
    while (next(d, &again, &field)) {
        uint64_t v[13];

        if (field.number != 3)
            continue;
        scalars(d, (struct piece){field.data, field.n}, v);
        if (!text_of(d, v[1])[0])
            fail(d, "label without a key");
        s->labels[s->n_labels++] =
            (struct label){text_of(d, v[1]), text_of(d, v[2]), (int64_t)v[3]};
    }
}

static void
read_sample(struct decoder *d, struct piece piece, struct sample *s)
{
    size_t n_ids, n_values;
    uint64_t *ids = numbers(d, piece, 1, &n_ids);
    uint64_t *values = numbers(d, piece, 2, &n_values);

    if (n_values != d->types.n)
        fail(d, "sample with %zu values, want %zu", n_values, d->types.n);
    if (n_ids == 0)
        fail(d, "sample with an empty stack");
    s->count = (int64_t)values[0];
    s->cpu_ns = n_values > 1 ? (int64_t)values[1] : 0;
    expand(d, s, ids, n_ids);
    read_labels(d, piece, s);
}

static void
read_comments(struct decoder *d, const void *data, size_t n)
{
    struct piece all = {data, n};
    uint64_t *indexes = numbers(d, all, 13, &d->p->n_comments);
    size_t i;

    d->p->comments = take(d, d->p->n_comments * sizeof *d->p->comments);
    for (i = 0; i < d->p->n_comments; i++)
        d->p->comments[i] = text_of(d, indexes[i]);
}

static void
second_pass(struct decoder *d, const void *data, size_t n)
{
    struct profile *p = d->p;
    size_t i;

    read_strings(d);
    read_types(d);
    read_mappings(d);
    read_functions(d);
    read_locations(d);
    p->n_samples = d->samples.n;
    p->samples = take(d, p->n_samples * sizeof *p->samples);
    for (i = 0; i < p->n_samples; i++)
        read_sample(d, d->samples.at[i], &p->samples[i]);
    read_comments(d, data, n);
    if (d->n_times != 1 || p->time_ns <= 0)
        fail(d, "%llu time_nanos, want one", (unsigned long long)d->n_times);
}

static void
free_pieces(struct decoder *d)
{
    struct pieces *lists[] = {&d->strings,   &d->samples,   &d->mappings,
                              &d->locations, &d->functions, &d->comments,
                              &d->types};
    size_t i;

    for (i = 0; i < sizeof lists / sizeof lists[0]; i++)
        free(lists[i]->at);
}

struct profile *
profile_decode(const void *data, size_t n, char *why, size_t why_size)
{
    struct decoder *d = calloc(1, sizeof *d);
    struct profile *volatile p = calloc(1, sizeof *p);

    if (!d || !p)
        bail("out of memory");
    d->p = p;
    d->why = why;
    d->why_size = why_size;
    if (setjmp(d->failed)) {
        profile_free(p);
        p = NULL;
    } else {
        first_pass(d, data, n);
        second_pass(d, data, n);
    }
    free_pieces(d);
    free(d);
    return p;
}

static bool
read_file(const char *path, struct cpprof__buffer *out)
{
    FILE *file = fopen(path, "rbe");
    char chunk[65536];
    size_t n;

    if (!file)
        return false;
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        cpprof__buffer_append(out, chunk, n);
    n = (size_t)ferror(file);
    fclose(file);
    return n == 0 && !out->failed;
}

struct profile *
profile_unpack(const void *packed, size_t n, char *why, size_t why_size)
{
    struct cpprof__buffer plain = {0};
    struct cpprof_error error = {0};
    struct profile *p = NULL;

    if (!cpprof__is_gzip(packed, n))
        snprintf(why, why_size, "%zu bytes that are not gzip", n);
    else if (cpprof__gunzip(&plain, packed, n, MAX_FILE, &error))
        snprintf(why, why_size, "%s", error.text);
    else
        p = profile_decode(plain.data, plain.n, why, why_size);
    cpprof__buffer_free(&plain);
    return p;
}

struct profile *
profile_read(const char *path, char *why, size_t why_size)
{
    struct cpprof__buffer packed = {0};
    struct profile *p = NULL;

    if (!read_file(path, &packed))
        snprintf(why, why_size, "%s", strerror(errno));
    else
        p = profile_unpack(packed.data, packed.n, why, why_size);
    cpprof__buffer_free(&packed);
    return p;
}

struct profile *
profile_load(const char *path)
{
    char why[256];
    struct profile *p = profile_read(path, why, sizeof why);

    if (!p)
        bail("%s: %s", path, why);
    return p;
}

void
profile_free(struct profile *p)
{
    if (!p)
        return;
    profile_free(p->joined);
    cpprof__arena_free(&p->arena);
    free(p);
}

void
profile_join(struct profile *p, struct profile *more)
{
    size_t n = p->n_samples + more->n_samples;
    struct sample *all = cpprof__arena_alloc(&p->arena, n * sizeof *all);
    struct profile *last = more;

    if (!all)
        bail("no memory for %zu samples", n);
    memcpy(all, p->samples, p->n_samples * sizeof *all);
    memcpy(all + p->n_samples, more->samples, more->n_samples * sizeof *all);
    p->samples = all;
    p->n_samples = n;
    p->duration_ns += more->duration_ns;
    while (last->joined)
        last = last->joined;
    last->joined = p->joined;
    p->joined = more;
}
