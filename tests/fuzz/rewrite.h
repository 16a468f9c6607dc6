/* SPDX-License-Identifier: MIT */
/*
 * What must hold of every profile that a fuzz target has got hold of: it is
 * whole, it can be written, and what is written reads back as the same, to the
 * byte.
 */
#ifndef TESTS_FUZZ_REWRITE_H
#define TESTS_FUZZ_REWRITE_H

#include "base/buffer.h"
#include <cpprof/pprof/change.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for what is tried, too little for a bomb. */
#define MAX_BYTES (16 << 20)

static inline void
expect(int holds)
{
    if (!holds)
        abort();
}

static inline void
must_be_valid(const struct pprof_profile *p)
{
    struct cpprof_error error;

    if (pprof_check(p, &error) == CPPROF_OK)
        return;
    fprintf(stderr, "%s\n", error.text);
    abort();
}

static inline int
rewrite_take(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

static inline void
rewrite_write(const struct pprof_profile *p, enum pprof_format format,
              struct cpprof__buffer *out)
{
    struct cpprof_writer writer = {sizeof writer, rewrite_take, NULL, out};
    struct cpprof_error error;

    if (pprof_write(p, &writer, format, NULL, &error) != CPPROF_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
}

static inline void
must_be_equal(const struct cpprof__buffer *a, const struct cpprof__buffer *b)
{
    if (a->n == b->n && (!a->n || memcmp(a->data, b->data, a->n) == 0))
        return;
    fwrite(a->data, 1, a->n, stderr);
    fputs("\n--- and ---\n", stderr);
    fwrite(b->data, 1, b->n, stderr);
    abort();
}

/* What is written, read; NULL for an empty file, which no reader takes. */
static inline struct pprof_profile *
rewrite_read(const struct cpprof__buffer *file)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error;

    if (file->n &&
        pprof_read_data(file->data, file->n, NULL, &p, &error) != CPPROF_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    return p;
}

/* A profile that was read from profile.proto: write, read, write again: the
 * same bytes; as text, too. */
static inline void
must_survive_rewriting(const struct pprof_profile *p)
{
    struct cpprof__buffer plain[2] = {{0}}, text[2] = {{0}};
    struct pprof_profile *again;

    must_be_valid(p);
    rewrite_write(p, PPROF_FORMAT_PLAIN, &plain[0]);
    rewrite_write(p, PPROF_FORMAT_TEXT, &text[0]);
    again = rewrite_read(&plain[0]);
    if (again) {
        must_be_valid(again);
        rewrite_write(again, PPROF_FORMAT_PLAIN, &plain[1]);
        must_be_equal(&plain[0], &plain[1]);
        rewrite_write(again, PPROF_FORMAT_TEXT, &text[1]);
        must_be_equal(&text[0], &text[1]);
    }
    pprof_free(again);
    cpprof__buffer_free(&plain[0]);
    cpprof__buffer_free(&plain[1]);
    cpprof__buffer_free(&text[0]);
    cpprof__buffer_free(&text[1]);
}

/* Any other profile. It may have labels that the format has no words for, a
 * number 0 without a unit or an empty text, and loses them. */
static inline void
must_survive_writing(const struct pprof_profile *p)
{
    struct cpprof__buffer plain = {0};
    struct pprof_profile *again;

    must_be_valid(p);
    rewrite_write(p, PPROF_FORMAT_PLAIN, &plain);
    again = rewrite_read(&plain);
    if (again)
        must_survive_rewriting(again);
    pprof_free(again);
    cpprof__buffer_free(&plain);
}

#endif
