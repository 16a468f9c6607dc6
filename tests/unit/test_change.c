/* SPDX-License-Identifier: MIT */
/* Changes that are asked for in words, and what is left when they fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"
#include "views.h"

/* A long name, and a key of a label. */
#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct pprof_profile *
make(void)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "");
    fixture_stack(&f, "read get<map main", 1, "k=v1 n=64kb");
    fixture_stack(&f, "free put main", 2, "k=v2 j=x n=4096kb");
    fixture_stack(&f, "main " A40, 3, A40 "=" A40);
    return fixture_must_read(&f);
}

static void
put_location(struct cpprof__buffer *out, const struct pprof_profile *p,
             const struct pprof_location *l)
{
    size_t i;

    for (i = 0; i < l->n_lines; i++) {
        uint32_t f = pprof_lines(p)[l->first_line + i].function;

        cpprof__buffer_printf(out, "%s%s", i ? "<" : "",
                              reference_text(p, pprof_functions(p)[f].name));
    }
}

/* All stacks, "leaf caller=value", parted by "; "; frees the profile. */
static void
expect_stacks(struct pprof_profile *p, const char *text)
{
    struct cpprof__buffer out = {0};
    size_t i, j;

    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    for (i = 0; i < pprof_sample_count(p); i++) {
        struct pprof_sample s = sample_of(p, i);

        for (j = 0; j < s.n_locations; j++) {
            cpprof__buffer_printf(&out, "%s", j ? " " : i ? "; " : "");
            put_location(&out, p, &pprof_locations(p)[s.locations[j]]);
        }
        cpprof__buffer_printf(&out, "=%" PRId64, s.values[1]);
    }
    cpprof__buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, text);
    cpprof__buffer_free(&out);
    pprof_free(p);
}

#define ALL "read get<map main=1; free put main=2; main " A40 "=3"

/* ----------------------------------------------------------- failures ---- */

/* Each call that takes expressions, with this one. */
static enum cpprof_status
call(struct pprof_profile *p, size_t which, const char *expression,
     uint32_t *matched, struct cpprof_error *error)
{
    struct pprof_name_filter filter = {.size = sizeof filter};

    switch (which) {
    case 0:
        filter.focus = "main";
        filter.hide = expression;
        return pprof_filter_names(p, &filter, matched, error);
    case 1:
        filter.show = "main";
        filter.ignore = expression;
        return pprof_filter_names(p, &filter, matched, error);
    case 2:
        return pprof_show_from(p, expression, matched, error);
    case 3:
        return pprof_filter_labels(p, "k=v", expression, matched, error);
    case 4:
        return pprof_filter_labels(p, expression, "k=v", matched, error);
    case 5:
        return pprof_filter_label_keys(p, "k", expression, matched, error);
    case 6:
        return pprof_filter_label_keys(p, expression, "k", matched, error);
    case 7:
        return pprof_prune_from(p, expression, error);
    case 8:
        return pprof_prune(p, "main|" A40, expression, error);
    }
    return pprof_prune(p, expression, NULL, error);
}

#define N_CALLS 10

static void
expression_that_is_none_changes_nothing(void **state)
{
    static const char *const names[N_CALLS] = {
        "parsing hide regexp: ",         "parsing ignore regexp: ",
        "parsing show_from regexp: ",    "parsing tagignore regexp: ",
        "parsing tagfocus regexp: ",     "parsing taghide regexp: ",
        "parsing tagshow regexp: ",      "parsing prune_from regexp: ",
        "failed to compile regexp x(: ", "failed to compile regexp x(: "};
    size_t i;

    for (i = 0; i < N_CALLS; i++) {
        struct cpprof_error error = {0};
        struct pprof_profile *p = make();
        uint32_t matched = 99;

        assert_int_equal(call(p, i, "x(", &matched, &error), CPPROF_BAD_DATA);
        assert_memory_equal(error.text, names[i], strlen(names[i]));
        assert_non_null(strstr(error.text, "missing closing )"));
        assert_int_equal(matched, 99);
        expect_labels(p, "k=v1 n=64kb; j=x k=v2 n=4096kb; " A40 "=" A40);
        expect_stacks(p, ALL);
    }
}

static void
filter_of_another_size_is_refused(void **state)
{
    struct pprof_name_filter filter = {.size = 3, .focus = "x"};
    struct cpprof_error error = {0};
    struct pprof_profile *p = make();

    assert_int_equal(pprof_filter_names(p, &filter, NULL, &error),
                     CPPROF_INVALID);
    assert_non_null(strstr(error.text, "name filter of 3 bytes"));
    expect_stacks(p, ALL);
}

static void
no_expression_changes_nothing(void **state)
{
    static const char *const none[] = {NULL, ""};
    size_t i, j;

    for (j = 0; j < 2; j++) {
        struct pprof_name_filter filter = {sizeof filter, none[j], none[j],
                                           none[j], none[j]};
        struct pprof_profile *p = make();

        assert_int_equal(pprof_filter_names(p, &filter, NULL, NULL), CPPROF_OK);
        for (i = 2; i < N_CALLS; i++)
            if (i == 2 || i == 7 || i == 9)
                assert_int_equal(call(p, i, none[j], NULL, NULL), CPPROF_OK);
        assert_int_equal(pprof_filter_labels(p, none[j], none[j], NULL, NULL),
                         CPPROF_OK);
        assert_int_equal(
            pprof_filter_label_keys(p, none[j], none[j], NULL, NULL),
            CPPROF_OK);
        assert_int_equal(
            pprof_add_label_frames(p, none[j], none[j], NULL, NULL, NULL),
            CPPROF_OK);
        expect_labels(p, "k=v1 n=64kb; j=x k=v2 n=4096kb; " A40 "=" A40);
        expect_stacks(p, ALL);
    }
}

/* ------------------------------------------------------------ labels ---- */

#define ONE   "read get<map main=1"
#define TWO   "free put main=2"
#define THREE "main " A40 "=3"
#define F     PPROF_MATCHED_FOCUS
#define I     PPROF_MATCHED_IGNORE

static void
labels_keep_and_drop_samples(void **state)
{
    static const struct {
        const char *focus, *ignore;
        uint32_t matched;
        const char *stacks;
    } cases[] = {
        {"v1", NULL, F, ONE},
        {"k:v", NULL, F, ONE "; " TWO},
        {"v2,x", NULL, F, TWO},
        {"v1,x", NULL, 0, ""},
        {"k=v[12]", NULL, F, ONE "; " TWO},
        {"k=^1,2$", NULL, F, TWO},
        {"nokey=v", NULL, 0, ""},
        {NULL, "v2", F | I, ONE "; " THREE},
        {"k=v", "j=x", F | I, ONE},
        {"v1", "v1", F | I, ""},
        {"64kb", NULL, F, ONE},
        {"65536b", NULL, F, ONE},
        {"65kb:", NULL, F, TWO},
        {":64kb", NULL, F, ONE},
        {"1kb:4mb", NULL, F, ONE "; " TWO},
        {"4mb:1kb", NULL, 0, ""},
        {"n=1mb:", NULL, F, TWO},
        {"k=1mb:", NULL, 0, ""},
        {"n=64", NULL, 0, ""},
        {"10s:", NULL, 0, ""},
        {NULL, "+1kb:1mb", F | I, TWO "; " THREE},
        {"-1kb:1mb", NULL, F, ONE},
        {"n=kb", NULL, 0, ""},
        {"=v1", NULL, F, ONE}, /* of any key */
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = make();
        uint32_t matched = 99;

        assert_int_equal(pprof_filter_labels(p, cases[i].focus, cases[i].ignore,
                                             &matched, NULL),
                         CPPROF_OK);
        if (matched != cases[i].matched)
            fail_msg("case %zu: matched %u", i, (unsigned)matched);
        expect_stacks(p, cases[i].stacks);
    }
}

/* What was filtered away does not count any more. */
static void
only_labels_of_samples_that_are_left_match(void **state)
{
    struct pprof_name_filter filter = {sizeof filter, "read", NULL, NULL, NULL};
    struct pprof_profile *p = make();
    uint32_t matched = 99;

    assert_int_equal(pprof_filter_names(p, &filter, NULL, NULL), CPPROF_OK);
    assert_int_equal(pprof_filter_label_keys(p, "j", NULL, &matched, NULL),
                     CPPROF_OK);
    assert_int_equal(matched, 0);
    assert_int_equal(pprof_add_label_frames(p, "j", "k", NULL, &matched, NULL),
                     CPPROF_OK);
    assert_int_equal(matched, 0);
    expect_stacks(p, " read get<map main =1");
}

static void
labels_become_frames(void **state)
{
    static const struct {
        const char *root, *leaf, *unit;
        uint32_t matched;
        const char *stacks;
    } cases[] = {
        {"k,,n", "j", NULL, F | I,
         " read get<map main 64kB v1=1; x free put main 4MB v2=2;  main " A40
         "  =3"},
        {"n", NULL, "kb", F,
         "read get<map main 64kB=1; free put main 4096kB=2; main " A40 " =3"},
        {"none", "", "auto", 0,
         "read get<map main =1; free put main =2; main " A40 " =3"},
        {NULL, "none,k", "auto", I,
         "v1  read get<map main=1; v2  free put main=2;   main " A40 "=3"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = make();
        uint32_t matched = 99;

        assert_int_equal(pprof_add_label_frames(p, cases[i].root, cases[i].leaf,
                                                cases[i].unit, &matched, NULL),
                         CPPROF_OK);
        assert_int_equal(matched, cases[i].matched);
        expect_stacks(p, cases[i].stacks);
    }
}

/* ----------------------------------------------------------- pruning ---- */

static struct pprof_profile *
one_stack(const char *stack)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "");
    fixture_stack(&f, stack, 1, NULL);
    return fixture_must_read(&f);
}

/* The example of the reference's comments: A is the leaf, D the root. */
static void
pruning_is_that_of_the_reference(void **state)
{
    static const struct {
        const char *stack, *drop, *keep, *pruned;
    } cases[] = {
        {"A B C B D", "A", NULL, "B C B D=1"},
        {"A B C B D", "B", NULL, "D=1"},
        {"A B C B D", "B", "B", "A B C B D=1"},
        {"A B C B D", "[AB]", "B", "B C B D=1"},
        {"A B C B D", "D", NULL, "A B C B D=1"},
        /* The whole name. */
        {"Ax B", "A", NULL, "Ax B=1"},
        {"Ax B", "A|x", NULL, "Ax B=1"},
        {"A<B<C D", "B", NULL, "C D=1"},
        {"A<B<C D", "C", NULL, "D=1"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = one_stack(cases[i].stack);

        assert_int_equal(pprof_prune(p, cases[i].drop, cases[i].keep, NULL),
                         CPPROF_OK);
        expect_stacks(p, cases[i].pruned);
    }
}

static void
pruning_from_is_that_of_the_reference(void **state)
{
    static const char *const cases[][3] = {
        {"A B C B D", "A", "A B C B D=1"}, {"A B C B D", "B", "B C B D=1"},
        {"A B C B D", "D", "D=1"},         {"A B C B D", "C|D", "C B D=1"},
        {"A<B<C D", "B", "B<C D=1"},       {"Ax(A) B", "A$", "Ax(A) B=1"},
        {"Ax(A) B", "x$", "Ax(A) B=1"},    {"A B", "none", "A B=1"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = one_stack(cases[i][0]);

        assert_int_equal(pprof_prune_from(p, cases[i][1], NULL), CPPROF_OK);
        expect_stacks(p, cases[i][2]);
    }
}

/* ----------------------------------------------------------- compact ---- */

static void
compact_drops_what_no_sample_needs(void **state)
{
    struct pprof_name_filter filter = {sizeof filter, "free", NULL, "put",
                                       NULL};
    struct pprof_profile *p = make();
    struct pprof_info info;
    size_t i;

    assert_int_equal(pprof_filter_names(p, &filter, NULL, NULL), CPPROF_OK);
    assert_int_equal(pprof_compact(p, NULL), CPPROF_OK);
    info = info_of(p);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_int_equal(pprof_location_count(p), 2);
    assert_int_equal(pprof_function_count(p), 2);
    assert_int_equal(pprof_mapping_count(p), 1);
    assert_int_equal(info.period, 10000000);
    for (i = 0; i < 2; i++) {
        assert_int_equal(pprof_locations(p)[i].id, i + 1);
        assert_int_equal(pprof_functions(p)[i].id, i + 1);
    }
    expect_stacks(p, "free main=2");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expression_that_is_none_changes_nothing),
        cmocka_unit_test(filter_of_another_size_is_refused),
        cmocka_unit_test(no_expression_changes_nothing),
        cmocka_unit_test(labels_keep_and_drop_samples),
        cmocka_unit_test(only_labels_of_samples_that_are_left_match),
        cmocka_unit_test(labels_become_frames),
        cmocka_unit_test(pruning_is_that_of_the_reference),
        cmocka_unit_test(pruning_from_is_that_of_the_reference),
        cmocka_unit_test(compact_drops_what_no_sample_needs),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
