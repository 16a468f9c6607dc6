/* SPDX-License-Identifier: MIT */
/*
 * The profiles that the reference's tests of merging and changing are about,
 * made here (profile/profile_test.go, profile/filter_test.go): few locations
 * with inlined functions, four mappings, labels that partly agree.
 */
#ifndef TESTS_CHANGE_FIXTURE_H
#define TESTS_CHANGE_FIXTURE_H

#include "pprof_fixture.h"
#include "views.h"

#include <inttypes.h>
#include <stdio.h>

struct reference_line {
    uint64_t function, line, column;
};

static inline void
reference_location(struct fixture *f, uint64_t id, uint64_t mapping,
                   uint64_t address, const struct reference_line *lines,
                   size_t n)
{
    size_t mark = cpprof__put_begin(&f->bytes), i;

    cpprof__put_uint(&f->bytes, 1, id);
    cpprof__put_uint_opt(&f->bytes, 2, mapping);
    cpprof__put_uint_opt(&f->bytes, 3, address);
    for (i = 0; i < n; i++) {
        size_t line = cpprof__put_begin(&f->bytes);

        cpprof__put_uint(&f->bytes, 1, lines[i].function);
        cpprof__put_uint_opt(&f->bytes, 2, lines[i].line);
        cpprof__put_uint_opt(&f->bytes, 3, lines[i].column);
        cpprof__put_end(&f->bytes, 4, line);
    }
    cpprof__put_end(&f->bytes, 4, mark);
}

/* A mapping that has all there is to have. */
static inline void
reference_mapping(struct fixture *f, uint64_t id, uint64_t start,
                  uint64_t limit, const char *file)
{
    size_t mark = cpprof__put_begin(&f->bytes);
    uint32_t field;

    cpprof__put_uint(&f->bytes, 1, id);
    cpprof__put_uint(&f->bytes, 2, start);
    cpprof__put_uint(&f->bytes, 3, limit);
    cpprof__put_uint_opt(&f->bytes, 5, fixture_string(f, file));
    for (field = 7; field <= 10; field++)
        cpprof__put_uint(&f->bytes, field, 1);
    cpprof__put_end(&f->bytes, 3, mark);
}

/* Two values of samples, in counts and milliseconds. */
static const int64_t reference_values[5][2] = {
    {1000, 1000}, {100, 100}, {10, 10}, {10000, 10000}, {1, 1}};
static const int64_t reference_other_values[5][2] = {
    {70, 1000}, {60, 100}, {50, 10}, {40, 10000}, {1, 1}};

static inline void
reference_tables(struct fixture *f, int with_mappings)
{
    static const struct reference_line lines[][2] = {{{1, 1, 0}},
                                                     {{2, 2, 0}, {3, 1, 0}},
                                                     {{3, 2, 0}},
                                                     {{3, 3, 2}},
                                                     {{3, 3, 5}}};
    uint64_t first = with_mappings ? 1 : 0, second = with_mappings ? 2 : 0;

    if (with_mappings) {
        reference_mapping(f, 1, 0x10000, 0x40000, "/bin/main");
        reference_mapping(f, 2, 0x1000, 0x4000, "/lib/lib.so");
        reference_mapping(f, 3, 0x4000, 0x5000, "/lib/lib2_c.so.6");
        reference_mapping(f, 4, 0x5000, 0x9000, "/lib/lib.so_6 (deleted)");
    }
    fixture_function(f, 1, "main", "main", "main.c");
    fixture_function(f, 2, "foo", "foo", "foo.c");
    fixture_function(f, 3, "foo_caller", "foo_caller", "foo.c");
    reference_location(f, 1000, second, 0x1000, lines[0], 1);
    reference_location(f, 2000, first, 0x2000, lines[1], 2);
    reference_location(f, 3000, first, 0x3000, lines[1], 2);
    reference_location(f, 3001, first, 0x3001, lines[2], 1);
    reference_location(f, 3002, first, 0x3002, lines[3], 1);
    reference_location(f, 3003, first, 0x3003, lines[4], 1);
}

static inline void
reference_types(struct fixture *f)
{
    fixture_value_type(f, 1, "samples", "count");
    fixture_value_type(f, 1, "cpu", "milliseconds");
    fixture_value_type(f, 11, "cpu", "milliseconds");
    cpprof__put_uint(&f->bytes, 12, 1);
    cpprof__put_uint(&f->bytes, 9, 10000);
    cpprof__put_uint(&f->bytes, 10, 10000000000);
}

/* Five samples with these values. */
static inline struct pprof_profile *
reference_profile(const int64_t values[5][2], int with_mappings)
{
    static const uint64_t stacks[][2] = {
        {1000}, {2000, 1000}, {3000, 1000}, {3001, 1000}, {3002, 1000}};
    static const char *const labels[] = {
        "key1=tag1 key2=tag1", "key1=tag2 key3=tag2", "key1=tag3 key2=tag2",
        "key1=tag4 key2=tag1", "key1=tag4 key2=tag1"};
    struct fixture f = {0};
    size_t i;

    reference_types(&f);
    reference_tables(&f, with_mappings);
    for (i = 0; i < 5; i++)
        fixture_sample(&f, stacks[i], i ? 2 : 1, values[i], labels[i]);
    return fixture_must_read(&f);
}

/* A sample of main alone for each text of labels; values 1000. */
static inline struct pprof_profile *
reference_labelled(const char *const *labels, size_t n)
{
    static const uint64_t stack[] = {1000};
    static const int64_t values[] = {1000, 1000};
    struct fixture f = {0};
    size_t i;

    reference_types(&f);
    reference_tables(&f, 1);
    for (i = 0; i < n; i++)
        fixture_sample(&f, stack, 1, values, labels[i]);
    return fixture_must_read(&f);
}

static inline const char *
reference_text(const struct pprof_profile *p, uint32_t string)
{
    return pprof_text(p, string, NULL);
}

static inline void
reference_put_label(struct cpprof__buffer *out, const struct pprof_profile *p,
                    const struct pprof_label *l)
{
    cpprof__buffer_printf(out, "%s=", reference_text(p, l->key));
    if (l->kind == PPROF_LABEL_TEXT)
        cpprof__buffer_printf(out, "%s", reference_text(p, l->text));
    else
        cpprof__buffer_printf(out, "%" PRId64 "%s", l->num,
                              reference_text(p, l->unit));
}

/* The labels of all samples: "k=v n=5kb; k=v". */
static inline void
expect_labels(const struct pprof_profile *p, const char *text)
{
    struct cpprof__buffer out = {0};
    size_t i, j;

    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    for (i = 0; i < pprof_sample_count(p); i++) {
        struct pprof_sample s = sample_of(p, i);

        cpprof__buffer_printf(&out, "%s", i ? "; " : "");
        for (j = 0; j < s.n_labels; j++) {
            cpprof__buffer_printf(&out, "%s", j ? " " : "");
            reference_put_label(&out, p, &s.labels[j]);
        }
    }
    cpprof__buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, text);
    cpprof__buffer_free(&out);
}

/* What the functions, lines and addresses of a sample are: "main:1@4096 ". */
static inline void
reference_put_stack(struct cpprof__buffer *out, const struct pprof_profile *p,
                    size_t sample)
{
    struct pprof_sample s = sample_of(p, sample);
    size_t i, j;

    for (i = 0; i < s.n_locations; i++) {
        const struct pprof_location *l = &pprof_locations(p)[s.locations[i]];

        for (j = 0; j < l->n_lines; j++) {
            const struct pprof_line *line = &pprof_lines(p)[l->first_line + j];
            uint32_t name = pprof_functions(p)[line->function].name;

            cpprof__buffer_printf(out, "%s:%" PRId64 "@%" PRIu64 " ",
                                  reference_text(p, name), line->line,
                                  l->address);
        }
    }
    cpprof__buffer_append(out, "", 1);
}

/* The sum of the first value over all samples whose stack is that of a sample
 * of another profile. */
static inline int64_t
sum_of_stack(const struct pprof_profile *p, const struct pprof_profile *other,
             size_t sample)
{
    struct cpprof__buffer wanted = {0};
    int64_t sum = 0;
    size_t i;

    reference_put_stack(&wanted, other, sample);
    for (i = 0; i < pprof_sample_count(p); i++) {
        struct cpprof__buffer stack = {0};

        reference_put_stack(&stack, p, i);
        if (strcmp((char *)stack.data, (char *)wanted.data) == 0)
            sum += sample_of(p, i).values[0];
        cpprof__buffer_free(&stack);
    }
    cpprof__buffer_free(&wanted);
    return sum;
}

#endif
