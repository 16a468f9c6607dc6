/* SPDX-License-Identifier: MIT */
/* Reports into memory. */
#ifndef TESTS_REPORT_FIXTURE_H
#define TESTS_REPORT_FIXTURE_H

#include "base/buffer.h"
#include <cpprof/pprof/profile.h>
#include <cpprof/pprof/report.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct report_text {
    struct cpprof__buffer bytes;
    struct cpprof__buffer warnings; /* a line each */
    int n_closed, failed;           /* how often closed; with what */
};

static inline int
report_text_write(void *ctx, const void *data, size_t n)
{
    struct report_text *t = ctx;

    cpprof__buffer_append(&t->bytes, data, n);
    return t->bytes.failed ? ENOMEM : 0;
}

static inline int
report_text_close(void *ctx, int failed)
{
    struct report_text *t = ctx;

    t->n_closed++;
    t->failed = failed;
    return 0;
}

static inline void
report_text_warn(void *ctx, const char *line)
{
    struct report_text *t = ctx;

    cpprof__buffer_printf(&t->warnings, "%s\n", line);
}

static inline void
report_text_free(struct report_text *t)
{
    cpprof__buffer_free(&t->bytes);
    cpprof__buffer_free(&t->warnings);
    memset(t, 0, sizeof *t);
}

/* Write a report of the profile into t, terminated; the status of doing so. */
static inline enum cpprof_status
report_text_of(struct pprof_profile *p, enum pprof_report_format format,
               struct pprof_report_options options, struct report_text *t,
               struct cpprof_error *error)
{
    struct cpprof_writer writer = {sizeof writer, report_text_write,
                                   report_text_close, t};
    enum cpprof_status status;

    options.warn = report_text_warn;
    options.ctx = t;
    status = pprof_report_write(p, &writer, format, &options, error);
    cpprof__buffer_append(&t->bytes, "", 1);
    cpprof__buffer_append(&t->warnings, "", 1);
    return status;
}

/* The report of a profile that it has to leave as it was, and to end once. */
static inline struct report_text
must_report(struct pprof_profile *p, enum pprof_report_format format,
            struct pprof_report_options options)
{
    struct cpprof_error error = {0};
    struct report_text t = {0};

    if (report_text_of(p, format, options, &t, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(t.n_closed, 1);
    assert_int_equal(t.failed, 0);
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    return t;
}

static inline enum cpprof_status
report_text_top(struct pprof_profile *p, struct pprof_report_options options,
                struct report_text *t, struct cpprof_error *error)
{
    return report_text_of(p, PPROF_REPORT_TOP, options, t, error);
}

#endif
