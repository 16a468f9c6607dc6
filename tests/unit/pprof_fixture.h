/* SPDX-License-Identifier: MIT */
/*
 * Profiles made in memory, for the tests of those who read them. Messages are
 * appended one by one; strings are interned and written by fixture_strings().
 */
#ifndef TESTS_PPROF_FIXTURE_H
#define TESTS_PPROF_FIXTURE_H

#include "base/proto.h"
#include <cpprof/pprof/change.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE_MAX 64

struct fixture {
    struct cpprof__buffer bytes;
    char *strings[FIXTURE_MAX];
    size_t n_strings;
    /* By fixture_stack(): the functions and locations that are there. */
    char *functions[FIXTURE_MAX];
    size_t n_functions;
    char *locations[FIXTURE_MAX];
    size_t n_locations;
};

static inline uint64_t
fixture_intern(char **table, size_t *n, const char *text)
{
    size_t i;

    for (i = 0; i < *n; i++)
        if (strcmp(table[i], text) == 0)
            return i;
    if (*n == FIXTURE_MAX)
        abort();
    table[(*n)++] = strdup(text);
    return i;
}

static inline uint64_t
fixture_string(struct fixture *f, const char *text)
{
    if (!f->n_strings)
        fixture_intern(f->strings, &f->n_strings, "");
    return fixture_intern(f->strings, &f->n_strings, text);
}

static inline void
fixture_value_type(struct fixture *f, uint32_t field, const char *type,
                   const char *unit)
{
    size_t mark = cpprof__put_begin(&f->bytes);

    cpprof__put_uint(&f->bytes, 1, fixture_string(f, type));
    cpprof__put_uint(&f->bytes, 2, fixture_string(f, unit));
    cpprof__put_end(&f->bytes, field, mark);
}

/* The two types of a CPU profile. */
static inline void
fixture_cpu(struct fixture *f)
{
    fixture_value_type(f, 1, "samples", "count");
    fixture_value_type(f, 1, "cpu", "nanoseconds");
    fixture_value_type(f, 11, "cpu", "nanoseconds");
    cpprof__put_uint(&f->bytes, 12, 10000000);
}

static inline void
fixture_mapping(struct fixture *f, uint64_t id, uint64_t start,
                const char *file, const char *build_id)
{
    size_t mark = cpprof__put_begin(&f->bytes);

    cpprof__put_uint(&f->bytes, 1, id);
    cpprof__put_uint(&f->bytes, 2, start);
    cpprof__put_uint(&f->bytes, 3, start + 0x4000);
    cpprof__put_uint_opt(&f->bytes, 5, fixture_string(f, file));
    cpprof__put_uint_opt(&f->bytes, 6, fixture_string(f, build_id));
    cpprof__put_uint(&f->bytes, 7, 1);
    cpprof__put_end(&f->bytes, 3, mark);
}

static inline void
fixture_function(struct fixture *f, uint64_t id, const char *name,
                 const char *system_name, const char *file)
{
    size_t mark = cpprof__put_begin(&f->bytes);

    cpprof__put_uint(&f->bytes, 1, id);
    cpprof__put_uint_opt(&f->bytes, 2, fixture_string(f, name));
    cpprof__put_uint_opt(&f->bytes, 3, fixture_string(f, system_name));
    cpprof__put_uint_opt(&f->bytes, 4, fixture_string(f, file));
    cpprof__put_end(&f->bytes, 5, mark);
}

static inline void
fixture_line(struct fixture *f, uint64_t function, uint64_t line)
{
    size_t mark = cpprof__put_begin(&f->bytes);

    cpprof__put_uint(&f->bytes, 1, function);
    cpprof__put_uint_opt(&f->bytes, 2, line);
    cpprof__put_end(&f->bytes, 4, mark);
}

/* A location of one line, or of none when function is 0. */
static inline void
fixture_location(struct fixture *f, uint64_t id, uint64_t mapping,
                 uint64_t address, uint64_t function)
{
    size_t mark = cpprof__put_begin(&f->bytes);

    cpprof__put_uint(&f->bytes, 1, id);
    cpprof__put_uint_opt(&f->bytes, 2, mapping);
    cpprof__put_uint_opt(&f->bytes, 3, address);
    if (function)
        fixture_line(f, function, 7);
    cpprof__put_end(&f->bytes, 4, mark);
}

/* "key=text" or "key=12kb": parted by spaces; a value that begins with a digit
 * is a number, what follows it the unit. */
static inline void
fixture_label(struct fixture *f, const char *word)
{
    size_t mark = cpprof__put_begin(&f->bytes), n = strcspn(word, "=");
    char *key = strndup(word, n), *value = strdup(word + n + 1), *unit;

    value[strcspn(value, " ")] = 0;
    cpprof__put_uint(&f->bytes, 1, fixture_string(f, key));
    if (*value >= '0' && *value <= '9') {
        cpprof__put_uint_opt(&f->bytes, 3, strtoull(value, &unit, 10));
        cpprof__put_uint_opt(&f->bytes, 4, fixture_string(f, unit));
    } else {
        cpprof__put_uint(&f->bytes, 2, fixture_string(f, value));
    }
    free(key);
    free(value);
    cpprof__put_end(&f->bytes, 3, mark);
}

static inline void
fixture_labels(struct fixture *f, const char *labels)
{
    while (labels && *labels) {
        fixture_label(f, labels);
        labels += strcspn(labels, " ");
        labels += *labels == ' ';
    }
}

static inline void
fixture_sample(struct fixture *f, const uint64_t *locations, size_t n,
               const int64_t values[2], const char *labels)
{
    size_t mark = cpprof__put_begin(&f->bytes);

    cpprof__put_uints(&f->bytes, 1, locations, n);
    cpprof__put_uints(&f->bytes, 2, (const uint64_t *)values, 2);
    fixture_labels(f, labels);
    cpprof__put_end(&f->bytes, 2, mark);
}

/* A location called by its functions, innermost first, parted by '<'; each is
 * written when it first comes. Its id, and that of a function, count from 1. */
static inline uint64_t
fixture_named_location(struct fixture *f, const char *name)
{
    size_t before = f->n_locations, mark;
    uint64_t at = fixture_intern(f->locations, &f->n_locations, name), id;
    uint64_t ids[8];
    char *copy, *next, *part;
    size_t n = 0, i;

    if (at < before)
        return at + 1;
    copy = next = strdup(name);
    while ((part = strsep(&next, "<"))) {
        before = f->n_functions;
        id = fixture_intern(f->functions, &f->n_functions, part) + 1;
        if (id > before)
            fixture_function(f, id, part, part, "/src/./file.c");
        ids[n++] = id;
    }
    free(copy);
    mark = cpprof__put_begin(&f->bytes);
    cpprof__put_uint(&f->bytes, 1, at + 1);
    cpprof__put_uint(&f->bytes, 2, 1);
    cpprof__put_uint(&f->bytes, 3, 0x1000 + at * 16);
    for (i = 0; i < n; i++)
        fixture_line(f, ids[i], 10 + at);
    cpprof__put_end(&f->bytes, 4, mark);
    return at + 1;
}

/* A sample of named locations, leaf first, parted by spaces; one sample of
 * `cpu` nanoseconds. */
static inline void
fixture_stack(struct fixture *f, const char *stack, int64_t cpu,
              const char *labels)
{
    char *copy = strdup(stack), *next = copy, *part;
    int64_t values[2] = {1, cpu};
    uint64_t ids[16];
    size_t n = 0;

    while ((part = strsep(&next, " ")))
        if (*part)
            ids[n++] = fixture_named_location(f, part);
    free(copy);
    fixture_sample(f, ids, n, values, labels);
}

static inline void
fixture_strings(struct fixture *f)
{
    size_t i;

    fixture_string(f, "");
    for (i = 0; i < f->n_strings; i++)
        cpprof__put_bytes(&f->bytes, 6, f->strings[i], strlen(f->strings[i]));
}

static inline void
fixture_free(struct fixture *f)
{
    size_t i;

    for (i = 0; i < f->n_strings; i++)
        free(f->strings[i]);
    for (i = 0; i < f->n_functions; i++)
        free(f->functions[i]);
    for (i = 0; i < f->n_locations; i++)
        free(f->locations[i]);
    cpprof__buffer_free(&f->bytes);
    memset(f, 0, sizeof *f);
}

/* Write the strings, read it all, free the fixture; NULL when it is refused. */
static inline struct pprof_profile *
fixture_read(struct fixture *f, struct cpprof_error *error)
{
    struct pprof_profile *p = NULL;

    fixture_strings(f);
    pprof_read_data(f->bytes.data, f->bytes.n, NULL, &p, error);
    fixture_free(f);
    return p;
}

/* The same for one that has to be good. */
static inline struct pprof_profile *
fixture_must_read(struct fixture *f)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = fixture_read(f, &error);

    if (!p) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    return p;
}

#endif
