/* SPDX-License-Identifier: MIT */
/*
 * Legacy profiles as text, for the tests of their readers: what a text reads
 * as is compared as text, Profile.String(), or as the words of the error.
 */
#ifndef TESTS_LEGACY_FIXTURE_H
#define TESTS_LEGACY_FIXTURE_H

#include "oom.h"
#include "profile/legacy/legacy.h"
#include "shared_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Read it and append its text, or "error: ..."; terminated. */
static inline void
legacy_show(const void *data, size_t n, struct cpprof__buffer *out)
{
    struct cpprof_error error = {0};
    struct pprof_profile *p = NULL;
    char line[300];

    out->n = 0;
    if (pprof_read_data(data, n, NULL, &p, &error) == CPPROF_OK) {
        assert_int_equal(pprof_check(p, &error), CPPROF_OK);
        assert_int_equal(shared_text(p, out), CPPROF_OK);
    } else {
        snprintf(line, sizeof line, "error: %s", error.text);
        cpprof__buffer_append(out, line, strlen(line));
    }
    pprof_free(p);
    cpprof__buffer_append(out, "", 1);
}

static inline void
assert_reads(const char *text, const char *want)
{
    struct cpprof__buffer out = {0};

    legacy_show(text, strlen(text), &out);
    assert_string_equal((const char *)out.data, want);
    cpprof__buffer_free(&out);
}

/* It prints as the reference prints it, FILE.string. */
static inline void
assert_golden(const char *name)
{
    struct cpprof__buffer in = {0}, want = {0}, got = {0};
    char path[200];

    snprintf(path, sizeof path, "pprof/profile/testdata/%s", name);
    if (!shared_read(path, &in))
        return;
    strcat(path, ".string");
    assert_true(shared_read(path, &want));
    cpprof__buffer_append(&want, "", 1);
    legacy_show(in.data, in.n, &got);
    assert_string_equal((const char *)got.data, (const char *)want.data);
    cpprof__buffer_free(&in);
    cpprof__buffer_free(&want);
    cpprof__buffer_free(&got);
}

/* One reader sees the text, in memory of just that size so that a sanitizer
 * notices every byte that is read beyond. */
static inline enum cpprof_status
legacy_read(cpprof__legacy_reader *reader, const char *text, size_t n,
            bool *recognized)
{
    struct pprof_profile *p = NULL;
    enum cpprof_status status = CPPROF_NOMEM;
    char *copy = malloc(n + 1);

    if (copy) {
        memcpy(copy + 1, text, n);
        status = cpprof__legacy_try(reader, copy + 1, n, &p, NULL);
    }
    *recognized = p != NULL;
    free(copy);
    pprof_free(p);
    return status;
}

/* Wherever the text ends, it reads or is refused. */
static inline void
assert_every_cut_is_safe(cpprof__legacy_reader *reader, const char *text)
{
    size_t n;

    for (n = 0; n <= strlen(text); n++) {
        bool recognized = false;
        enum cpprof_status status = legacy_read(reader, text, n, &recognized);

        if (status != CPPROF_OK)
            assert_int_equal(status, CPPROF_BAD_DATA);
    }
}

/* Whichever allocation fails, that is said and nothing leaks. */
static inline void
assert_every_allocation_may_fail(cpprof__legacy_reader *reader,
                                 const char *text)
{
    enum cpprof_status status = CPPROF_NOMEM;
    bool recognized = false;
    long n;

    for (n = 0; status == CPPROF_NOMEM; n++) {
        oom_watch();
        oom.countdown = n;
        status = legacy_read(reader, text, strlen(text), &recognized);
        oom.countdown = -1;
        assert_int_equal(oom.n_live, 0);
        assert_true(status == CPPROF_OK || status == CPPROF_NOMEM);
    }
    assert_true(recognized);
    assert_true(n > 10);
}

#endif
