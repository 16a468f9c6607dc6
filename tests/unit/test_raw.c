/* SPDX-License-Identifier: MIT */
/*
 * -raw, -proto and -topproto: what is left of a profile. How it is written is
 * for test_text_dump and test_encode.
 */
#include "pprof_fixture.h"
#include "report_fixture.h"
#include "views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct pprof_report_options defaults = PPROF_REPORT_DEFAULTS;

/* main calls outer, into which inner is inlined; ids count from 1. */
static struct pprof_profile *
make(void)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "c0ffee");
    fixture_stack(&f, "inner<outer main", 30, "k=v");
    fixture_stack(&f, "inner<outer main", 7, "k=v");
    fixture_stack(&f, "main", 5, NULL);
    return fixture_must_read(&f);
}

/* What is printed between "Samples:" and the end, columns left out. */
static void
expect_raw(struct pprof_report_options options, const char *text)
{
    struct pprof_profile *p = make();
    struct report_text t = must_report(p, PPROF_REPORT_RAW, options);
    const char *samples = strstr((char *)t.bytes.data, "Samples:\n");

    assert_non_null(samples);
    assert_string_equal(samples, text);
    report_text_free(&t);
    pprof_free(p);
}

#define LOCATIONS                                                              \
    "Locations\n"                                                              \
    "     1: 0x1000 M=1 inner /src/./file.c:10:0 s=0\n"                        \
    "             outer /src/./file.c:10:0 s=0\n"                              \
    "     2: 0x1010 M=1 main /src/./file.c:11:0 s=0\n"                         \
    "Mappings\n"                                                               \
    "1: 0x1000/0x5000/0x0 /usr/bin/prog c0ffee [FN]\n"

static void
raw_prints_equal_samples_apart(void **state)
{
    expect_raw(defaults, "Samples:\n"
                         "samples/count cpu/nanoseconds\n"
                         "          1         30: 1 2 \n"
                         "                k:[v]\n"
                         "          1          7: 1 2 \n"
                         "                k:[v]\n"
                         "          1          5: 2 \n" LOCATIONS);
}

static void
raw_prints_what_filters_leave(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    options.tagignore = "v";
    options.divide_by = 5; /* is for -proto */
    options.granularity = PPROF_REPORT_FILES;
    expect_raw(options, "Samples:\n"
                        "samples/count cpu/nanoseconds\n"
                        "          1          5: 2 \n" LOCATIONS);
}

static void
raw_without_inlines_keeps_what_the_linker_knows(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    options.flags = PPROF_REPORT_NO_INLINES;
    options.focus = "inner";
    options.tagshow = "none";
    expect_raw(options, "Samples:\n"
                        "samples/count cpu/nanoseconds\n"
                        "          1         30: 1 2 \n"
                        "          1          7: 1 2 \n"
                        "Locations\n"
                        "     1: 0x1000 M=1 outer /src/./file.c:10:0 s=0\n"
                        "     2: 0x1010 M=1 main /src/./file.c:11:0 s=0\n"
                        "Mappings\n"
                        "1: 0x1000/0x5000/0x0 /usr/bin/prog c0ffee [FN]\n");
}

/* ------------------------------------------------------------- proto ---- */

/* Write a report that is a profile, and read it. */
static struct pprof_profile *
reread(enum pprof_report_format format, struct pprof_report_options options)
{
    struct pprof_profile *p = make(), *made = NULL;
    struct cpprof_error error = {0};
    struct report_text t = {0};

    if (report_text_of(p, format, options, &t, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(t.n_closed, 1);
    assert_true(t.bytes.n > 2 && memcmp(t.bytes.data, "\x1f\x8b", 2) == 0);
    if (pprof_read_data(t.bytes.data, t.bytes.n - 1, NULL, &made, &error) !=
        CPPROF_OK)
        fail_msg("%s", error.text);
    report_text_free(&t);
    pprof_free(p);
    return made;
}

static void
proto_keeps_all_and_divides_values(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct pprof_profile *p;
    struct pprof_info info;

    options.divide_by = 4;
    p = reread(PPROF_REPORT_PROTO, options);
    info = info_of(p);
    assert_int_equal(pprof_sample_count(p), 3);
    assert_int_equal(pprof_location_count(p), 2);
    assert_int_equal(pprof_line_count(p), 3);
    assert_int_equal(info.period, 10000000);
    assert_int_equal(sample_of(p, 0).values[0], 0);
    assert_int_equal(sample_of(p, 0).values[1], 7); /* cut */
    assert_int_equal(sample_of(p, 2).values[1], 1);
    pprof_free(p);
}

static void
topproto_has_a_sample_for_each_line_of_top(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    static const struct {
        const char *name;
        int64_t cum, flat;
    } want[] = {{"inner", 37, 37}, {"main", 42, 5}, {"outer", 37, 0}};
    struct pprof_profile *p;
    size_t i;

    options.unit = "ns";
    p = reread(PPROF_REPORT_TOPPROTO, options);
    assert_int_equal(pprof_sample_count(p), 3);
    assert_string_equal(pprof_text(p, pprof_sample_types(p)[0].type, NULL),
                        "cum");
    assert_string_equal(pprof_text(p, pprof_sample_types(p)[1].unit, NULL),
                        "ns");
    for (i = 0; i < 3; i++) {
        struct pprof_sample s = sample_of(p, i);
        const struct pprof_location *l = &pprof_locations(p)[s.locations[0]];
        const struct pprof_line *line = &pprof_lines(p)[l->first_line];

        assert_int_equal(s.n_locations, 1);
        assert_int_equal(l->n_lines, 1);
        assert_int_equal(s.values[0], want[i].cum);
        assert_int_equal(s.values[1], want[i].flat);
        assert_string_equal(
            pprof_text(p, pprof_functions(p)[line->function].name, NULL),
            want[i].name);
    }
    pprof_free(p);
}

/* ------------------------------------------------------------ errors ---- */

static int
refuse(void *ctx, const void *data, size_t n)
{
    (void)ctx, (void)data, (void)n;
    return ENOSPC;
}

static void
writer_that_fails_is_told_and_closed_once(void **state)
{
    static const enum pprof_report_format formats[] = {
        PPROF_REPORT_TOP,   PPROF_REPORT_TAGS,     PPROF_REPORT_RAW,
        PPROF_REPORT_PROTO, PPROF_REPORT_TOPPROTO,
    };
    size_t i;

    for (i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct pprof_profile *p = make();
        struct cpprof_error error = {0};
        struct report_text t = {0};
        struct cpprof_writer writer = {sizeof writer, refuse, report_text_close,
                                       &t};

        assert_int_equal(
            pprof_report_write(p, &writer, formats[i], NULL, &error),
            CPPROF_SYSTEM);
        assert_int_equal(error.sys, ENOSPC);
        assert_int_equal(t.n_closed, 1);
        assert_int_equal(t.failed, 1);
        pprof_free(p);
    }
}

static void
unknown_format_and_type_are_refused(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct pprof_profile *p = make();
    struct cpprof_error error = {0};
    struct report_text t = {0};

    assert_int_equal(
        report_text_of(p, (enum pprof_report_format)99, options, &t, &error),
        CPPROF_INVALID);
    assert_int_equal(t.failed, 1);
    options.sample_index = "nosuch";
    assert_int_equal(report_text_of(p, PPROF_REPORT_RAW, options, &t, &error),
                     CPPROF_INVALID);
    assert_string_equal(
        error.text, "sample_index \"nosuch\" must be one of: [samples cpu]");
    assert_int_equal(t.n_closed, 2);
    report_text_free(&t);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_prints_equal_samples_apart),
        cmocka_unit_test(raw_prints_what_filters_leave),
        cmocka_unit_test(raw_without_inlines_keeps_what_the_linker_knows),
        cmocka_unit_test(proto_keeps_all_and_divides_values),
        cmocka_unit_test(topproto_has_a_sample_for_each_line_of_top),
        cmocka_unit_test(writer_that_fails_is_told_and_closed_once),
        cmocka_unit_test(unknown_format_and_type_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
