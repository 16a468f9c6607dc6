/* SPDX-License-Identifier: MIT */
#include "collect/labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cpprof__label_set *
make_set(void)
{
    struct cpprof__label_set *set =
        calloc(1, sizeof *set + 3 * sizeof *set->labels);

    assert_non_null(set);
    set->n = 3;
    set->labels[0].key = "path";
    set->labels[0].str = "/index";
    set->labels[1].key = "size";
    set->labels[1].num = -5;
    set->labels[1].num_unit = "bytes";
    set->labels[2].key = "plain";
    set->labels[2].num = 7;
    return set;
}

static void
labels_survive_encoding(void **state)
{
    struct cpprof__label_set *set = make_set();
    struct cpprof__buffer out = {0};
    struct cpprof__builder_label labels[4];

    (void)state;
    cpprof__labels_encode(&out, set);
    assert_false(out.failed);
    assert_int_equal(cpprof__labels_decode((char *)out.data, out.n, labels, 4),
                     3);
    assert_string_equal(labels[0].key, "path");
    assert_string_equal(labels[0].str, "/index");
    assert_null(labels[1].str);
    assert_int_equal(labels[1].num, -5);
    assert_string_equal(labels[1].num_unit, "bytes");
    assert_int_equal(labels[2].num, 7);
    assert_null(labels[2].num_unit);
    cpprof__buffer_free(&out);
    free(set);
}

static void
labels_cut_anywhere_are_read_up_to_there(void **state)
{
    struct cpprof__label_set *set = make_set();
    struct cpprof__buffer out = {0};
    struct cpprof__builder_label labels[4];
    size_t n;

    (void)state;
    cpprof__labels_encode(&out, set);
    for (n = 0; n < out.n; n++) {
        char *cut = malloc(n + 1); /* a sanitizer sees a byte too far */

        assert_non_null(cut);
        memcpy(cut, out.data, n);
        assert_true(cpprof__labels_decode(cut, n, labels, 4) < 3);
        free(cut);
    }
    cpprof__buffer_free(&out);
    free(set);
}

static void
more_labels_than_asked_for_are_cut(void **state)
{
    struct cpprof__label_set *set = make_set();
    struct cpprof__buffer out = {0};
    struct cpprof__builder_label labels[2];

    (void)state;
    cpprof__labels_encode(&out, set);
    assert_int_equal(cpprof__labels_decode((char *)out.data, out.n, labels, 2),
                     2);
    cpprof__buffer_free(&out);
    free(set);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_survive_encoding),
        cmocka_unit_test(labels_cut_anywhere_are_read_up_to_there),
        cmocka_unit_test(more_labels_than_asked_for_are_cut),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
