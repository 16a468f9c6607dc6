/* SPDX-License-Identifier: MIT */
/*
 * -call_tree: a function is a node for each way that leads to it. What is
 * expected here is what the reference prints for the same profiles, but for
 * the order of equal functions, which is that of the samples here and none
 * there.
 */
#include "pprof_fixture.h"
#include "report_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

/* leaf is called by a and by b, and once inlined; b calls itself. */
static struct pprof_profile *
make(void)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/usr/bin/prog", "");
    fixture_stack(&f, "leaf a main", 300000000, NULL);
    fixture_stack(&f, "leaf b main", 200000000, "k=v");
    fixture_stack(&f, "leaf b b main", 100000000, NULL);
    fixture_stack(&f, "leaf<a main", 50000000, NULL);
    fixture_stack(&f, "leaf main", 0, NULL);
    return fixture_must_read(&f);
}

static struct report_text
report(enum pprof_report_format format, struct pprof_report_options options)
{
    struct pprof_profile *p = make();
    struct report_text t;

    options.flags |= PPROF_REPORT_CALL_TREE;
    t = must_report(p, format, options);
    pprof_free(p);
    return t;
}

/* How often a text is in the report. */
static int
count(const struct report_text *t, const char *text)
{
    const char *at = (const char *)t->bytes.data;
    int n = 0;

    for (; (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void
function_is_drawn_once_for_each_way(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t = report(PPROF_REPORT_DOT, options);

    assert_int_equal(count(&t, "label=\"leaf\\n"), 3);
    assert_int_equal(count(&t, "label=\"leaf\\n350ms (53.85%)\""), 1);
    assert_int_equal(count(&t, "label=\"leaf\\n200ms (30.77%)\""), 1);
    assert_int_equal(count(&t, "label=\"leaf\\n100ms (15.38%)\""), 1);
    assert_int_equal(count(&t, "label=\"b\\n0 of 300ms"), 1);
    assert_int_equal(count(&t, "label=\"b\\n0 of 100ms"), 1);
    assert_int_equal(count(&t, " -> "), 6 * 3 + 1); /* and one to a tag */
    report_text_free(&t);
}

static void
call_that_is_not_always_inlined_is_not_inline(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t = report(PPROF_REPORT_DOT, options);

    assert_int_equal(count(&t, "(inline)"), 0);
    report_text_free(&t);
}

static void
children_of_a_node_left_out_hang_on_its_caller(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t;

    options.nodecount = 4;
    t = report(PPROF_REPORT_DOT, options);
    assert_int_equal(count(&t, "style=\"dotted\""), 2);
    assert_int_equal(count(&t, " tooltip=\"main ... leaf (350ms)\""), 1);
    report_text_free(&t);
}

static void
callgrind_tells_contexts_apart(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct report_text t = report(PPROF_REPORT_CALLGRIND, options);

    assert_int_equal(count(&t, "cfn=(1) leaf [1/4]\n"), 0);
    assert_int_equal(count(&t, " leaf [1/"), 1);
    assert_int_equal(count(&t, " leaf [2/"), 1);
    assert_int_equal(count(&t, " leaf [3/"), 1);
    report_text_free(&t);
}

static void
profile_is_the_same_afterwards(void **state)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct pprof_profile *p = make();
    struct report_text before = {0}, tree = {0}, after = {0};

    report_text_of(p, PPROF_REPORT_RAW, options, &before, NULL);
    options.flags = PPROF_REPORT_CALL_TREE;
    report_text_of(p, PPROF_REPORT_DOT, options, &tree, NULL);
    options.flags = 0;
    report_text_of(p, PPROF_REPORT_RAW, options, &after, NULL);
    assert_true(before.bytes.n > 100);
    assert_string_equal((char *)before.bytes.data, (char *)after.bytes.data);
    report_text_free(&before);
    report_text_free(&tree);
    report_text_free(&after);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_is_drawn_once_for_each_way),
        cmocka_unit_test(call_that_is_not_always_inlined_is_not_inline),
        cmocka_unit_test(children_of_a_node_left_out_hang_on_its_caller),
        cmocka_unit_test(callgrind_tells_contexts_apart),
        cmocka_unit_test(profile_is_the_same_afterwards),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
