/* SPDX-License-Identifier: MIT */
/* Profiles written into memory, for the tests of what writes them. */
#ifndef TESTS_WRITE_FIXTURE_H
#define TESTS_WRITE_FIXTURE_H

#include "base/gzip.h"
#include "pprof_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct written {
    struct cpprof__buffer bytes;
    int n_closed;
    int failed;        /* what close was told */
    int write_failure; /* errno to fail with; 0: take the bytes */
    int close_failure;
};

static inline int
written_take(void *ctx, const void *data, size_t n)
{
    struct written *w = ctx;

    if (!w->write_failure)
        cpprof__buffer_append(&w->bytes, data, n);
    return w->write_failure;
}

static inline int
written_close(void *ctx, int failed)
{
    struct written *w = ctx;

    w->n_closed++;
    w->failed = failed;
    return w->close_failure;
}

static inline struct cpprof_writer
written_writer(struct written *w)
{
    return (struct cpprof_writer){sizeof(struct cpprof_writer), written_take,
                                  written_close, w};
}

static inline void
written_free(struct written *w)
{
    cpprof__buffer_free(&w->bytes);
}

/* Write it; it must succeed. */
static inline struct written
must_write(const struct pprof_profile *p, enum pprof_format format)
{
    struct written w = {0};
    struct cpprof_error error = {0};

    if (pprof_write(p, (struct cpprof_writer[]){written_writer(&w)}, format,
                    NULL, &error))
        fail_msg("%s", error.text);
    assert_int_equal(w.n_closed, 1);
    assert_int_equal(w.failed, 0);
    return w;
}

static inline struct pprof_profile *
must_read_bytes(const void *data, size_t n)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error = {0};

    if (pprof_read_data(data, n, NULL, &p, &error))
        fail_msg("%s", error.text);
    assert_int_equal(pprof_check(p, &error), CPPROF_OK);
    return p;
}

static inline struct pprof_profile *
read_back(const struct written *w)
{
    return must_read_bytes(w->bytes.data, w->bytes.n);
}

static inline void
assert_written(const struct written *w, const void *data, size_t n)
{
    assert_int_equal(w->bytes.n, n);
    assert_memory_equal(w->bytes.data, data, n);
}

/* Both are written to the same bytes. */
static inline void
assert_same(const struct pprof_profile *a, const struct pprof_profile *b,
            enum pprof_format format)
{
    struct written x = must_write(a, format);
    struct written y = must_write(b, format);

    assert_written(&x, y.bytes.data, y.bytes.n);
    written_free(&x);
    written_free(&y);
}

static inline void
assert_written_text(struct written *w, const char *text)
{
    cpprof__buffer_append(&w->bytes, "", 1);
    assert_string_equal((const char *)w->bytes.data, text);
}

/* A profile with one of everything that can be written, in odd forms: ids that
 * are huge and out of order, negative numbers, a folded location, a location
 * of two lines with columns, one of no mapping and no line, labels of several
 * values, a unit without a number. */
static inline struct pprof_profile *
make_odd(void)
{
    static const uint64_t stacks[][4] = {
        {UINT64_MAX, 3, 1ULL << 49, 7}, {7, 3}, {1ULL << 28}};
    static const int64_t values[][2] = {{1, -1}, {INT64_MIN, INT64_MAX}, {0}};
    struct fixture f = {0};
    size_t mark;

    fixture_cpu(&f);
    fixture_mapping(&f, 1ULL << 40, 0x1000, "/bin/prog", "1234");
    fixture_mapping(&f, 2, 0x8000, "", "");
    fixture_function(&f, 99, "f(int)", "_Z1fi", "f.cc");
    fixture_function(&f, 5, "main", "main", "");
    fixture_location(&f, UINT64_MAX, 1ULL << 40, UINT64_MAX, 99);
    fixture_location(&f, 3, 0, 0, 0);
    fixture_location(&f, 7, 2, 0x8010, 5);
    fixture_location(&f, 1ULL << 28, 2, 0x8020, 5);
    mark = cpprof__put_begin(&f.bytes);
    cpprof__put_uint(&f.bytes, 1, 1ULL << 49);
    cpprof__put_uint(&f.bytes, 2, 1ULL << 40);
    fixture_line(&f, 99, (uint64_t)-3);
    {
        size_t line = cpprof__put_begin(&f.bytes);

        cpprof__put_uint(&f.bytes, 1, 5);
        cpprof__put_uint(&f.bytes, 2, 12);
        cpprof__put_uint(&f.bytes, 3, 34);
        cpprof__put_end(&f.bytes, 4, line);
    }
    cpprof__put_uint(&f.bytes, 5, 1);
    cpprof__put_end(&f.bytes, 4, mark);
    fixture_sample(&f, stacks[0], 4, values[0],
                   "b=y a=x b=w bytes=5 bytes=0kb req=7");
    fixture_sample(&f, stacks[1], 2, values[1], NULL);
    fixture_sample(&f, stacks[2], 1, values[2], "b=y");
    fixture_sample(&f, NULL, 0, values[0], "req=7");
    cpprof__put_uint(&f.bytes, 7, fixture_string(&f, "drop"));
    cpprof__put_uint(&f.bytes, 8, fixture_string(&f, "keep"));
    cpprof__put_uint(&f.bytes, 9, 1500000000123456789);
    cpprof__put_uint(&f.bytes, 10, 90000000000);
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "first comment"));
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "second"));
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "first comment"));
    cpprof__put_uint(&f.bytes, 14, fixture_string(&f, "cpu"));
    cpprof__put_uint(&f.bytes, 15, fixture_string(&f, "https://example.com"));
    fixture_string(&f, "never used");
    fixture_strings(&f);
    {
        struct pprof_profile *p = must_read_bytes(f.bytes.data, f.bytes.n);

        fixture_free(&f);
        return p;
    }
}

#endif
