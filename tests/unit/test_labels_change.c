/* SPDX-License-Identifier: MIT */
/* Labels set for all samples, and taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"
#include "views.h"

/* Three samples of which some have the label. */
static const char *const some[] = {
    NULL, "key1=value1 key1=value2 key1=value3 key2=value1", "key1=value2"};
static const char *const numbers[] = {
    NULL, "key1=1bytes key1=2bytes key1=3bytes key2=1 key1=text",
    "key1=2bytes"};

static void
label_is_set_instead_of_what_there_was(void **state)
{
    static const struct {
        const char *labels[3];
        size_t n;
        const char *result;
    } cases[] = {
        {{NULL, "key1=value1 key1=value2 key2=value1", "key1=value2"},
         3,
         "key1=value1; key1=value1 key2=value1; key1=value1"},
        {{NULL}, 1, "key1=value1"},
        {{"key2=value2", "key3=value3"},
         2,
         "key1=value1 key2=value2; key1=value1 key3=value3"},
        {{"key1=value1", "key1=value1"}, 2, "key1=value1; key1=value1"},
        {{"key1=5kb"}, 1, "key1=value1 key1=5kb"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p =
            reference_labelled(cases[i].labels, cases[i].n);

        assert_int_equal(pprof_set_label(p, "key1", "value1", NULL), CPPROF_OK);
        expect_labels(p, cases[i].result);
        pprof_free(p);
    }
}

static void
label_is_taken_away(void **state)
{
    struct pprof_profile *p = reference_labelled(some, 3);

    assert_int_equal(pprof_remove_label(p, "key1", NULL), CPPROF_OK);
    expect_labels(p, "; key2=value1; ");
    assert_int_equal(pprof_remove_label(p, "unheard of", NULL), CPPROF_OK);
    expect_labels(p, "; key2=value1; ");
    pprof_free(p);
}

static void
number_is_set_instead_of_what_there_was(void **state)
{
    struct pprof_profile *p = reference_labelled(numbers, 3);

    assert_int_equal(pprof_set_num_label(p, "key1", 7, "kilobytes", NULL),
                     CPPROF_OK);
    expect_labels(p, "key1=7kilobytes; key1=text key1=7kilobytes key2=1; "
                     "key1=7kilobytes");
    assert_int_equal(pprof_set_num_label(p, "key0", -1, NULL, NULL), CPPROF_OK);
    expect_labels(p, "key0=-1 key1=7kilobytes; "
                     "key1=text key0=-1 key1=7kilobytes key2=1; "
                     "key0=-1 key1=7kilobytes");
    pprof_free(p);
}

static void
number_is_taken_away(void **state)
{
    struct pprof_profile *p = reference_labelled(numbers, 3);

    assert_int_equal(pprof_remove_num_label(p, "key1", NULL), CPPROF_OK);
    expect_labels(p, "; key1=text key2=1; ");
    assert_int_equal(pprof_remove_num_label(p, "key1", NULL), CPPROF_OK);
    expect_labels(p, "; key1=text key2=1; ");
    pprof_free(p);
}

/* Text and numbers of one key are two things. */
static void
text_and_number_do_not_touch_each_other(void **state)
{
    struct pprof_profile *p = reference_labelled(numbers, 3);

    assert_int_equal(pprof_remove_label(p, "key1", NULL), CPPROF_OK);
    expect_labels(p, "; key1=1bytes key1=2bytes key1=3bytes key2=1; "
                     "key1=2bytes");
    pprof_free(p);
}

/* Samples that differed in the label alone are then one, also for a label
 * that was set, and then set to what another sample has. */
static void
compact_merges_what_labels_kept_apart(void **state)
{
    struct pprof_profile *p = reference_labelled(some, 3);

    pprof_remove_label(p, "key2", NULL);
    pprof_set_label(p, "key1", "same", NULL);
    assert_int_equal(pprof_compact(p, NULL), CPPROF_OK);
    expect_labels(p, "key1=same");
    assert_int_equal(sample_of(p, 0).values[0], 3000);
    pprof_free(p);
}

/* Labels that a filter took away do not come back with an equal set. */
static void
filtered_sets_can_be_changed_further(void **state)
{
    struct pprof_profile *p = reference_labelled(some, 3);

    assert_int_equal(pprof_filter_label_keys(p, "key2", NULL, NULL, NULL),
                     CPPROF_OK);
    expect_labels(p, "; key2=value1; ");
    pprof_set_label(p, "key1", "value2", NULL);
    expect_labels(p, "key1=value2; key1=value2 key2=value1; key1=value2");
    pprof_remove_label(p, "key2", NULL);
    expect_labels(p, "key1=value2; key1=value2; key1=value2");
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_is_set_instead_of_what_there_was),
        cmocka_unit_test(label_is_taken_away),
        cmocka_unit_test(number_is_set_instead_of_what_there_was),
        cmocka_unit_test(number_is_taken_away),
        cmocka_unit_test(text_and_number_do_not_touch_each_other),
        cmocka_unit_test(compact_merges_what_labels_kept_apart),
        cmocka_unit_test(filtered_sets_can_be_changed_further),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
