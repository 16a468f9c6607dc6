/* SPDX-License-Identifier: MIT */
/* Text into a profile and a profile into text, for tests of text formats. */
#ifndef TESTS_TEXT_FIXTURE_H
#define TESTS_TEXT_FIXTURE_H

#include "profile/text/text.h"

#include <stdlib.h>
#include <string.h>

/* A copy of exactly n bytes: a sanitizer sees what is read behind them. */
static inline struct pprof_profile *
text_read(cpprof__legacy_reader *read, const char *text, size_t n,
          enum cpprof_status *status, struct cpprof_error *error)
{
    struct pprof_profile *p = NULL;
    char *exact = malloc(n ? n : 1);

    memcpy(exact, text, n);
    *status = cpprof__legacy_try(read, exact, n, &p, error);
    free(exact);
    return p;
}

/* Must succeed, and be whole. */
static inline struct pprof_profile *
text_must_read(cpprof__legacy_reader *read, const char *text)
{
    struct cpprof_error error = {0};
    enum cpprof_status status;
    struct pprof_profile *p =
        text_read(read, text, strlen(text), &status, &error);

    assert_string_equal(error.text, "");
    assert_non_null(p);
    assert_int_equal(pprof_check(p, &error), CPPROF_OK);
    return p;
}

static inline int
text_append(void *ctx, const void *data, size_t n)
{
    cpprof__buffer_append(ctx, data, n);
    return 0;
}

typedef void
text_writer(const struct pprof_profile *p, size_t type,
            struct cpprof__sink *out);

/* What a writer writes, terminated; the caller frees it. */
static inline char *
text_write(text_writer *write, const struct pprof_profile *p, size_t type)
{
    struct cpprof__buffer text = {0};
    struct cpprof__sink sink = {
        .writer = {sizeof(struct cpprof_writer), text_append, NULL, &text}};

    write(p, type, &sink);
    assert_int_equal(cpprof__sink_end(&sink, CPPROF_OK, NULL), CPPROF_OK);
    cpprof__buffer_append(&text, "", 1);
    return (char *)text.data;
}

static inline const char *
text_of(const struct pprof_profile *p, uint32_t string)
{
    return cpprof__strings_text(&p->strings, string);
}

#endif
