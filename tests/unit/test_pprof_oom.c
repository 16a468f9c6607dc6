/* SPDX-License-Identifier: MIT */
/* Whichever allocation fails, a call says so and leaves nothing behind. */
#include "base/gzip.h"
#include "pprof_fixture.h"
#include <cpprof/report.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"

/* A profile of some size, so that tables grow; packed. */
static void
make(struct cpprof__buffer *packed)
{
    struct fixture f = {0};
    char stack[64], labels[64];
    int i;

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    for (i = 0; i < 20; i++) {
        snprintf(stack, sizeof stack, "_Z1fi<in%d out%d main", i, i % 5);
        snprintf(labels, sizeof labels, "thread=t%d bytes=%dkb", i % 5, i);
        fixture_stack(&f, stack, i - 3, labels);
    }
    cpprof__put_uint(&f.bytes, 7, fixture_string(&f, "in7"));
    cpprof__put_uint(&f.bytes, 8, fixture_string(&f, "in8"));
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "comment"));
    fixture_strings(&f);
    cpprof__gzip(packed, f.bytes.data, f.bytes.n, 6, NULL);
    fixture_free(&f);
}

/* A sum over what a call made, which is the same whenever it succeeds. */
static uint64_t made;

static int
take(void *ctx, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t i;

    for (i = 0; i < n; i++)
        made = made * 31 + p[i];
    return 0;
}

/* ---------------------------------------------------------- the calls ---- */

static enum cpprof_status
read_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct cpprof_pprof *p = NULL;
    enum cpprof_status status =
        cpprof_pprof_read_data(packed->data, packed->n, NULL, &p, error);

    assert_true((p != NULL) == (status == CPPROF_OK));
    cpprof_pprof_free(p);
    return status;
}

static enum cpprof_status
change_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct cpprof_pprof *p = NULL;
    enum cpprof_status status =
        cpprof_pprof_read_data(packed->data, packed->n, NULL, &p, error);

    if (status == CPPROF_OK)
        status =
            cpprof_pprof_demangle(p, CPPROF_PPROF_DEMANGLE_SHORT, 0, error);
    if (status == CPPROF_OK)
        status = cpprof_pprof_drop_frames(p, error);
    if (status == CPPROF_OK)
        status = cpprof_pprof_set_binary(p, "/bin/other", "5678", error);
    if (status == CPPROF_OK)
        status = cpprof_pprof_add_comment(p, "another", error);
    if (status == CPPROF_OK)
        status = cpprof_pprof_set_label(p, "key", "value", error);
    if (status == CPPROF_OK)
        cpprof_pprof_scale(p, -1);
    if (status == CPPROF_OK)
        status = cpprof_pprof_normalize(p, p, error);
    if (status == CPPROF_OK)
        status = cpprof_pprof_check(p, error);
    cpprof_pprof_free(p);
    return status;
}

static enum cpprof_status
merge_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct cpprof_pprof_merger *merger = NULL;
    struct cpprof_pprof *p = NULL, *merged = NULL;
    enum cpprof_status status = cpprof_pprof_merger_make(&merger, error);
    int i;

    for (i = 0; i < 2 && status == CPPROF_OK; i++) {
        status =
            cpprof_pprof_read_data(packed->data, packed->n, NULL, &p, error);
        if (status == CPPROF_OK && i)
            cpprof_pprof_scale(p, -1);
        if (status == CPPROF_OK)
            status = cpprof_pprof_merger_add(merger, p, error);
        cpprof_pprof_free(p);
        p = NULL;
    }
    if (status == CPPROF_OK)
        status = cpprof_pprof_merger_finish(merger, &merged, error);
    cpprof_pprof_merger_free(merger);
    cpprof_pprof_free(merged);
    return status;
}

static enum cpprof_status
report_it(const struct cpprof__buffer *packed, struct cpprof_error *error)
{
    struct cpprof_report_options options = CPPROF_REPORT_DEFAULTS;
    struct cpprof_pprof *p = NULL;
    struct cpprof_writer writer = {take, NULL, NULL};
    enum cpprof_status status =
        cpprof_pprof_read_data(packed->data, packed->n, NULL, &p, error);

    options.granularity = CPPROF_REPORT_LINES;
    options.flags = CPPROF_REPORT_MEAN | CPPROF_REPORT_NO_TRIM;
    options.focus = options.show = options.show_from = "main|in";
    options.ignore = options.hide = options.prune_from = "in1";
    options.tagfocus = "t[0-4]";
    options.tagignore = "bytes=5mb:";
    options.tagshow = options.taghide = "thread";
    options.tagroot = "thread";
    options.tagleaf = "bytes";
    if (status == CPPROF_OK)
        status =
            cpprof_report_write(p, CPPROF_REPORT_TOP, &options, writer, error);
    assert_true((made != 0) == (status == CPPROF_OK));
    cpprof_pprof_free(p);
    return status;
}

/* Let allocation 1, 2, ... fail, until the call needs no more of them. */
static void
    survives(enum cpprof_status (*call)(const struct cpprof__buffer *packed,
                                        struct cpprof_error *error))
{
    struct cpprof__buffer packed = {0};
    uint64_t expected;
    long n;

    make(&packed);
    made = 0;
    assert_int_equal(call(&packed, NULL), CPPROF_OK);
    expected = made;
    for (n = 0;; n++) {
        struct cpprof_error error = {0};
        enum cpprof_status status;

        oom_watch();
        oom.countdown = n;
        made = 0;
        status = call(&packed, &error);
        oom.countdown = -1;
        assert_int_equal(oom.n_live, 0);
        if (status == CPPROF_OK)
            break;
        assert_int_equal(status, CPPROF_NOMEM);
        assert_string_equal(error.text, "out of memory");
    }
    assert_int_equal(made, expected);
    /* It did allocate, and often. */
    assert_in_range(n, 10, 10000);
    cpprof__buffer_free(&packed);
}

static void
reading_survives_want_of_memory(void **state)
{
    survives(read_it);
}

static void
changing_survives_want_of_memory(void **state)
{
    survives(change_it);
}

static void
merging_survives_want_of_memory(void **state)
{
    survives(merge_it);
}

static void
reporting_survives_want_of_memory(void **state)
{
    survives(report_it);
}

/* Ten times the samples of the same stacks: not one allocation more but for
 * the doubling of arrays. */
static void
samples_are_not_allocated_one_by_one(void **state)
{
    long needed[2] = {0, 0};
    int round;

    for (round = 0; round < 2; round++) {
        struct cpprof__buffer packed = {0};
        struct fixture f = {0};
        enum cpprof_status status;
        int i;

        fixture_cpu(&f);
        for (i = 0; i < (round ? 20000 : 2000); i++)
            fixture_stack(&f, i % 2 ? "a b main" : "c main", i, "k=v");
        fixture_strings(&f);
        cpprof__gzip(&packed, f.bytes.data, f.bytes.n, 1, NULL);
        fixture_free(&f);
        do {
            made = 0;
            oom_watch();
            oom.countdown = needed[round]++;
            status = report_it(&packed, NULL);
            oom.countdown = -1;
        } while (status == CPPROF_NOMEM);
        assert_int_equal(status, CPPROF_OK);
        cpprof__buffer_free(&packed);
    }
    assert_in_range(needed[1], needed[0], needed[0] + 20);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_want_of_memory),
        cmocka_unit_test(changing_survives_want_of_memory),
        cmocka_unit_test(merging_survives_want_of_memory),
        cmocka_unit_test(reporting_survives_want_of_memory),
        cmocka_unit_test(samples_are_not_allocated_one_by_one),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
