/* SPDX-License-Identifier: MIT */
/* A copy is equal to its original and independent of it. */
#include "profile/model/make.h"
#include "write_fixture.h"

static void
copy_is_equal(void **state)
{
    struct pprof_profile *p = make_odd(), *copy = NULL;

    assert_int_equal(pprof_copy(p, &copy, NULL), CPPROF_OK);
    assert_int_equal(pprof_check(copy, NULL), CPPROF_OK);
    assert_same(p, copy, PPROF_FORMAT_PLAIN);
    pprof_free(p);
    pprof_free(copy);
}

static void
change_of_either_leaves_the_other(void **state)
{
    struct pprof_profile *p = make_odd(), *same = make_odd(), *copy = NULL;

    assert_int_equal(pprof_copy(p, &copy, NULL), CPPROF_OK);
    assert_int_equal(pprof_add_comment(copy, "third", NULL), CPPROF_OK);
    assert_int_equal(pprof_set_binary(copy, "/bin/b", "77", NULL), CPPROF_OK);
    copy->values.at[0] = 1234;
    assert_same(p, same, PPROF_FORMAT_PLAIN);
    pprof_free(p);
    assert_int_equal(pprof_check(copy, NULL), CPPROF_OK);
    assert_int_equal(copy->values.at[0], 1234);
    pprof_free(copy);
    pprof_free(same);
}

/* Its indexes are whole: text and label sets that are there are found, and
 * many more can be added. */
static void
copy_can_grow(void **state)
{
    struct pprof_profile *p = make_odd(), *copy = NULL;
    struct cpprof__maker m = {0};
    const int64_t values[] = {1, 2};
    size_t n_strings = pprof_string_count(p), n_sets;
    char text[16];
    int i;

    assert_int_equal(pprof_copy(p, &copy, NULL), CPPROF_OK);
    m.p = copy;
    n_sets = copy->labels.sets.n;
    cpprof__make_label(&m, cpprof__make_text(&m, "b"),
                       cpprof__make_text(&m, "y"));
    cpprof__make_sample(&m, NULL, 0, values);
    assert_int_equal(copy->labels.sets.n, n_sets);
    assert_int_equal(pprof_string_count(copy), n_strings);
    for (i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "new%d", i);
        cpprof__make_label(&m, cpprof__make_text(&m, text), 1);
        cpprof__make_sample(&m, NULL, 0, values);
    }
    assert_false(m.failed);
    assert_int_equal(copy->labels.sets.n, n_sets + 1000);
    assert_int_equal(pprof_string_count(copy), n_strings + 1000);
    assert_int_equal(pprof_check(copy, NULL), CPPROF_OK);
    cpprof__maker_free(&m);
    pprof_free(p);
    pprof_free(copy);
}

static void
empty_profile_can_be_copied(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make(), *copy = NULL;

    assert_int_equal(pprof_copy(p, &copy, NULL), CPPROF_OK);
    assert_same(p, copy, PPROF_FORMAT_PLAIN);
    pprof_free(p);
    pprof_free(copy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_is_equal),
        cmocka_unit_test(change_of_either_leaves_the_other),
        cmocka_unit_test(copy_can_grow),
        cmocka_unit_test(empty_profile_can_be_copied),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
