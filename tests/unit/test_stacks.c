/* SPDX-License-Identifier: MIT */
/*
 * Reports of whole stacks: -collapsed, -json, -flamegraph. The page of the
 * last is looked at as text here; tests/e2e/page.py runs its scripts.
 */
#include "pprof_fixture.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#define HOSTILE "</script><img/src=x;onerror=\"alert(1)\">\xff\n\xe2\x80\xa8"

/* Stacks that are equal but for lines, labels, or inlining; recursion; and a
 * name that tries to get out of wherever it is put. */
static struct pprof_profile *
make(void)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "");
    fixture_stack(&f, "leaf<a main", 300000000, "k=v n=64kb");
    fixture_stack(&f, "leaf a main", 200000000, NULL);
    fixture_stack(&f, "leaf a main", 100000000, NULL);
    fixture_stack(&f, "a a main", 50000000, "k=v k=w");
    fixture_function(&f, 50, HOSTILE, "", "");
    fixture_location(&f, 50, 1, 0x2000, 50);
    fixture_sample(&f, (uint64_t[]){50, fixture_named_location(&f, "main")}, 2,
                   (int64_t[]){1, 40000000}, NULL);
    fixture_stack(&f, "cold main", 1000, NULL);
    fixture_stack(&f, "gone main", 0, NULL);
    return fixture_must_read(&f);
}

/* A profile of two addresses without names. */
static struct pprof_profile *
make_bare(void)
{
    struct fixture f = {0};
    uint64_t locations[2] = {1, 2};
    int64_t values[2] = {1, 10};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "");
    fixture_location(&f, 1, 1, 0x1010, 0);
    fixture_location(&f, 2, 0, 0x99, 0);
    fixture_sample(&f, locations, 2, values, NULL);
    fixture_sample(&f, locations, 0, values, NULL);
    return fixture_must_read(&f);
}

static struct report_text
report(struct pprof_profile *p, enum pprof_report_format format,
       struct pprof_report_options options)
{
    struct cpprof_error error = {0};
    struct report_text t = {0};

    if (report_text_of(p, format, options, &t, &error) != CPPROF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(t.n_closed, 1);
    pprof_free(p);
    return t;
}

static struct report_text
report_all(enum pprof_report_format format)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;

    return report(make(), format, options);
}

static void
has(const struct report_text *t, const char *text)
{
    const char *all = (const char *)t->bytes.data, *data = strstr(all, "{");

    if (!strstr(all, text))
        fail_msg("no \"%s\" in:\n%s", text,
                 strncmp(all, "<!", 2) ? data : strstr(all, "\"names\""));
}

static void
lacks(const struct report_text *t, const char *text)
{
    if (strstr((const char *)t->bytes.data, text))
        fail_msg("\"%s\" in:\n%s", text, (char *)t->bytes.data);
}

/* --------------------------------------------------------- collapsed ---- */

static void
equal_stacks_are_one_line(void **state)
{
    struct report_text t = report_all(PPROF_REPORT_COLLAPSED);

    assert_string_equal((char *)t.bytes.data,
                        "main;a;leaf 600000000\n"
                        "main;a;a 50000000\n"
                        "main;</script><img/src=x:onerror=\"alert(1)\">\xff "
                        "\xe2\x80\xa8 40000000\n"
                        "main;cold 1000\n");
    report_text_free(&t);
}

static void
collapsed_frames_are_of_the_granularity(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t;

    options.granularity = PPROF_REPORT_LINES;
    options.focus = "leaf";
    options.flags = PPROF_REPORT_NO_INLINES;
    t = report(make(), PPROF_REPORT_COLLAPSED, options);
    assert_string_equal((char *)t.bytes.data,
                        "main /src/file.c:11;a /src/file.c:10 300000000\n"
                        "main /src/file.c:11;a /src/file.c:13;"
                        "leaf /src/file.c:12 300000000\n");
    report_text_free(&t);
}

static void
frames_without_names_are_told_by_file_and_address(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t = report(make_bare(), PPROF_REPORT_COLLAPSED, options);

    assert_string_equal((char *)t.bytes.data,
                        "[unknown <0x99>];[prog <0x1010>] 10\n"
                        "[unknown] 10\n");
    report_text_free(&t);
}

/* -------------------------------------------------------------- json ---- */

static void
json_has_every_stack_with_its_labels(void **state)
{
    struct report_text t = report_all(PPROF_REPORT_JSON);

    has(&t, "{\"schema\":1,\"program\":\"/usr/bin/prog\",\"period\":10000000,"
            "\"period_type\":{\"type\":\"cpu\",\"unit\":\"nanoseconds\"},"
            "\"comments\":[],\n\"sample_types\":[{\"type\":\"samples\","
            "\"unit\":\"count\"},{\"type\":\"cpu\",\"unit\":\"nanoseconds\"}],"
            "\"shown\":1,\"total\":690001000,\n\"frames\":[\n");
    has(&t, "{\"name\":\"main\",\"function\":\"main\"}");
    has(&t, "\"inlined\":[2],\"values\":[1,300000000],\"labels\":"
            "{\"k\":[\"v\"]},\"numbers\":{\"n\":[{\"value\":64,\"unit\":"
            "\"kb\"}]}}");
    has(&t, "\"values\":[2,300000000]}");
    has(&t, "\"labels\":{\"k\":[\"v\",\"w\"]}}");
    report_text_free(&t);
}

static void
json_escapes_what_is_not_text(void **state)
{
    struct report_text t = report_all(PPROF_REPORT_JSON);

    has(&t, "\"\\u003c/script\\u003e\\u003cimg/src=x;onerror=\\u0022alert(1)"
            "\\u0022\\u003e\\ufffd\\u000a\\u2028\"");
    lacks(&t, "</script>");
    report_text_free(&t);
}

/* -------------------------------------------------------- flamegraph ---- */

static void
page_has_boxes_in_the_order_of_a_walk(void **state)
{
    struct report_text t = report_all(PPROF_REPORT_FLAMEGRAPH);

    has(&t, "\"boxes\":[\n0,0,1,690001000,0,0,0,1,0,2,690001000,0,0,0,"
            "2,0,2,650000000,0,0,0,4,0,0,600000000,0,600000000,0,"
            "2,0,0,50000000,0,50000000,0,3,0,0,40000000,0,40000000,0]}");
    lacks(&t, "\"cold\"");
    report_text_free(&t);
}

static void
page_without_trimming_has_all(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t;

    options.flags = PPROF_REPORT_NO_TRIM;
    t = report(make(), PPROF_REPORT_FLAMEGRAPH, options);
    has(&t, "\"cold\"");
    report_text_free(&t);
}

static void
page_marks_what_is_always_inlined(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t;

    options.tagfocus = "n=64kb";
    t = report(make(), PPROF_REPORT_FLAMEGRAPH, options);
    has(&t, ",1,0,300000000,0,300000000,0]}");
    report_text_free(&t);
}

static void
page_does_not_let_names_out_of_the_data(void **state)
{
    struct report_text t = report_all(PPROF_REPORT_FLAMEGRAPH);
    const char *at = (const char *)t.bytes.data;
    int n = 0;

    for (; (at = strstr(at, "</script>")); at++)
        n++;
    assert_int_equal(n, 4); /* the page's own: of the data, of its scripts */
    lacks(&t, "<img");
    lacks(&t, "http:");
    lacks(&t, "https:");
    report_text_free(&t);
}

static void
page_of_a_comparison_has_both_sides(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct pprof_profile *all = NULL, *p = make(), *base = make();
    struct cpprof_error error = {0};
    struct pprof_profile *both[2] = {p, base};
    struct pprof_merger *merger = NULL;
    struct report_text t;
    int i;

    assert_int_equal(pprof_set_label(base, "pprof::base", "true", &error), 0);
    pprof_scale(base, -0.5);
    assert_int_equal(pprof_merger_new(&merger, &error), 0);
    for (i = 0; i < 2; i++) {
        assert_int_equal(pprof_merger_add(merger, both[i], &error), 0);
        pprof_free(both[i]);
    }
    assert_int_equal(pprof_merger_finish(merger, &all, &error), 0);
    pprof_merger_free(merger);
    t = report(all, PPROF_REPORT_FLAMEGRAPH, options);
    has(&t, "\"diff\":true");
    has(&t, ",600000000,300000000,");
    report_text_free(&t);
}

static void
page_of_endless_recursion_is_bounded(void **state)
{
    enum { DEPTH = 100000 };
    struct fixture f = {0};
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    uint64_t *locations = malloc(DEPTH * sizeof *locations);
    int64_t values[2] = {1, 10};
    struct pprof_profile *p;
    struct report_text t;
    size_t i;

    assert_non_null(locations);
    for (i = 0; i < DEPTH; i++)
        locations[i] = 1;
    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "");
    fixture_location(&f, 1, 1, 0x1010, 0);
    fixture_sample(&f, locations, DEPTH, values, NULL);
    free(locations);
    p = fixture_must_read(&f);
    t = report(p, PPROF_REPORT_FLAMEGRAPH, options);
    has(&t, "\"cut\":true");
    assert_in_range(t.bytes.n, 500000, 2000000);
    report_text_free(&t);
}

static void
profile_without_samples_makes_empty_reports(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t;

    options.focus = "nothing like it";
    t = report(make(), PPROF_REPORT_COLLAPSED, options);
    assert_string_equal((char *)t.bytes.data, "");
    report_text_free(&t);
    t = report(make(), PPROF_REPORT_JSON, options);
    has(&t, "\"stacks\":[]}");
    report_text_free(&t);
    t = report(make(), PPROF_REPORT_FLAMEGRAPH, options);
    has(&t, "\"boxes\":[\n0,0,0,0,0,0,0]}");
    report_text_free(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one_line),
        cmocka_unit_test(collapsed_frames_are_of_the_granularity),
        cmocka_unit_test(frames_without_names_are_told_by_file_and_address),
        cmocka_unit_test(json_has_every_stack_with_its_labels),
        cmocka_unit_test(json_escapes_what_is_not_text),
        cmocka_unit_test(page_has_boxes_in_the_order_of_a_walk),
        cmocka_unit_test(page_without_trimming_has_all),
        cmocka_unit_test(page_marks_what_is_always_inlined),
        cmocka_unit_test(page_does_not_let_names_out_of_the_data),
        cmocka_unit_test(page_of_a_comparison_has_both_sides),
        cmocka_unit_test(page_of_endless_recursion_is_bounded),
        cmocka_unit_test(profile_without_samples_makes_empty_reports),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
