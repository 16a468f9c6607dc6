/* SPDX-License-Identifier: MIT */
/*
 * Reads a profile.proto back into flat arrays, for the tests of its writer:
 * as little as the tests need, and strict where a reader may be lenient.
 */
#ifndef TESTS_PROFILE_WALK_H
#define TESTS_PROFILE_WALK_H

#include "base/proto.h"
#include "profile/gunzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WALK_MAX       64
#define WALK_STRINGS   512
#define WALK_DEPTH     1100
#define WALK_N_FIELDS  16
#define WALK_MAX_BYTES (64u << 20)

struct walk_line {
    uint64_t function, line, column;
};

struct walk_location {
    uint64_t id, mapping, address;
    struct walk_line lines[16];
    size_t n_lines;
};

struct walk_function {
    uint64_t id, name, system_name, file, start_line;
};

struct walk_mapping {
    uint64_t id, start, limit, offset, path, build_id;
    uint64_t has[4]; /* functions, filenames, line numbers, inline frames */
};

struct walk_label {
    uint64_t key, str, num, unit;
};

struct walk_sample {
    uint64_t locations[WALK_DEPTH];
    uint64_t values[16];
    size_t n_locations, n_values;
    struct walk_label labels[8];
    size_t n_labels;
};

struct walk {
    struct cpprof__buffer bytes; /* unpacked */
    struct walk_location locations[WALK_MAX];
    struct walk_function functions[WALK_MAX];
    struct walk_mapping mappings[WALK_MAX];
    struct walk_sample samples[WALK_MAX];
    size_t n_locations, n_functions, n_mappings, n_samples;
    struct {
        const char *text;
        size_t n;
    } strings[WALK_STRINGS];
    size_t n_strings;
    uint64_t types[8][2], period_type[2];
    size_t n_types;
    uint64_t comments[16];
    size_t n_comments;
    uint64_t scalar[WALK_N_FIELDS]; /* by field number */
    unsigned n_seen[WALK_N_FIELDS]; /* how often the field is there */
    uint32_t first, last;           /* field numbers */
};

/* The numbers of a message whose fields are all numbers, by field. */
static void
walk_numbers(const struct cpprof__field *message, uint64_t *numbers, size_t n)
{
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    struct cpprof__field f;
    const char *error;

    while (cpprof__proto_next(&r, &f, &error)) {
        assert_int_equal(f.wire, CPPROF__WIRE_VARINT);
        assert_in_range(f.number, 1, n);
        numbers[f.number - 1] = f.value;
    }
    assert_null(error);
}

/* Append the numbers of one occurrence of a repeated field. */
static void
walk_repeated(const struct cpprof__field *f, uint64_t *numbers, size_t *n,
              size_t max)
{
    struct cpprof__reader r;

    if (f->wire == CPPROF__WIRE_VARINT) {
        assert_true(*n < max);
        numbers[(*n)++] = f->value;
        return;
    }
    r = cpprof__reader(f->data, f->n);
    while (cpprof__reader_left(&r)) {
        assert_true(*n < max);
        numbers[(*n)++] = cpprof__read_varint(&r);
    }
    assert_false(r.bad);
}

static void
walk_location(struct walk *w, const struct cpprof__field *message)
{
    struct walk_location *l = &w->locations[w->n_locations++];
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    struct cpprof__field f;
    const char *error;

    assert_true(w->n_locations <= WALK_MAX);
    while (cpprof__proto_next(&r, &f, &error)) {
        if (f.number == 1)
            l->id = f.value;
        else if (f.number == 2)
            l->mapping = f.value;
        else if (f.number == 3)
            l->address = f.value;
        else if (f.number == 4 && l->n_lines < 16)
            walk_numbers(&f, &l->lines[l->n_lines++].function, 3);
        else
            fail_msg("location field %u", f.number);
    }
    assert_null(error);
}

static void
walk_mapping(struct walk *w, const struct cpprof__field *message)
{
    struct walk_mapping *m = &w->mappings[w->n_mappings++];
    uint64_t n[10] = {0};

    assert_true(w->n_mappings <= WALK_MAX);
    walk_numbers(message, n, 10);
    *m = (struct walk_mapping){
        n[0], n[1], n[2], n[3], n[4], n[5], {n[6], n[7], n[8], n[9]}};
}

static void
walk_sample(struct walk *w, const struct cpprof__field *message)
{
    struct walk_sample *s = &w->samples[w->n_samples % WALK_MAX];
    struct cpprof__reader r = cpprof__reader(message->data, message->n);
    struct cpprof__field f;
    const char *error;

    w->n_samples++; /* of very many the last are kept */
    memset(s, 0, sizeof *s);
    while (cpprof__proto_next(&r, &f, &error)) {
        if (f.number == 1)
            walk_repeated(&f, s->locations, &s->n_locations, WALK_DEPTH);
        else if (f.number == 2)
            walk_repeated(&f, s->values, &s->n_values, 16);
        else if (f.number == 3 && s->n_labels < 8)
            walk_numbers(&f, &s->labels[s->n_labels++].key, 4);
        else
            fail_msg("sample field %u", f.number);
    }
    assert_null(error);
}

static void
walk_field(struct walk *w, const struct cpprof__field *f)
{
    assert_in_range(f->number, 1, WALK_N_FIELDS - 1);
    w->first = w->first ? w->first : f->number;
    w->last = f->number;
    w->n_seen[f->number]++;
    if (f->number == 1)
        walk_numbers(f, w->types[w->n_types++], 2);
    else if (f->number == 2)
        walk_sample(w, f);
    else if (f->number == 3)
        walk_mapping(w, f);
    else if (f->number == 4)
        walk_location(w, f);
    else if (f->number == 5)
        walk_numbers(f, &w->functions[w->n_functions++].id, 5);
    else if (f->number == 6 && w->n_strings < WALK_STRINGS) {
        w->strings[w->n_strings].text = (const char *)f->data;
        w->strings[w->n_strings++].n = f->n;
    } else if (f->number == 11)
        walk_numbers(f, w->period_type, 2);
    else if (f->number == 13)
        walk_repeated(f, w->comments, &w->n_comments, 16);
    else
        w->scalar[f->number] = f->value;
    assert_true(w->n_functions < WALK_MAX && w->n_types < 8);
}

/* Of one or more gzip members; free with walk_free(). */
static struct walk *
walk_profile(const void *data, size_t n)
{
    struct walk *w = calloc(1, sizeof *w);
    struct cpprof__reader r;
    struct cpprof__field f;
    struct cpprof_error failure;
    const char *error;

    assert_non_null(w);
    assert_int_equal(
        cpprof__gunzip(&w->bytes, data, n, WALK_MAX_BYTES, &failure),
        CPPROF_OK);
    r = cpprof__reader(w->bytes.data, w->bytes.n);
    while (cpprof__proto_next(&r, &f, &error))
        walk_field(w, &f);
    assert_null(error);
    assert_true(w->n_strings > 0);
    assert_int_equal(w->strings[0].n, 0);
    return w;
}

static void
walk_free(struct walk *w)
{
    cpprof__buffer_free(&w->bytes);
    free(w);
}

/* A string of the table, in one of a few buffers that take turns. */
static inline const char *
walk_string(const struct walk *w, uint64_t index)
{
    static char text[8][256];
    static unsigned turn;
    char *out = text[turn++ % 8];

    assert_true(index < w->n_strings);
    assert_true(w->strings[index].n < sizeof text[0]);
    memcpy(out, w->strings[index].text, w->strings[index].n);
    out[w->strings[index].n] = 0;
    return out;
}

#endif
