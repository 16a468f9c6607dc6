/* SPDX-License-Identifier: MIT */
/* What the filters leave of stacks and labels. */
#include "pprof_fixture.h"
#include "profile/filter/filter.h"
#include "views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

/* The same stacks for every test; one call is inlined. */
static struct pprof_profile *
make(const char *drop_frames, const char *keep_frames)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "");
    fixture_stack(&f, "read get<map main", 1, "k=v1 n=64kb");
    fixture_stack(&f, "free put main", 2, "k=v2 j=x n=4096kb");
    fixture_stack(&f, "main", 3, NULL);
    cpprof__put_uint(&f.bytes, 7, fixture_string(&f, drop_frames));
    cpprof__put_uint(&f.bytes, 8, fixture_string(&f, keep_frames));
    return fixture_must_read(&f);
}

static void
put_location(struct cpprof__buffer *out, const struct pprof_profile *p,
             uint32_t location)
{
    const struct pprof_location *l = &p->locations.at[location];
    size_t i;

    for (i = 0; i < l->n_lines; i++) {
        uint32_t function = p->lines.at[l->first_line + i].function;
        uint32_t name = p->functions.at[function].name;

        cpprof__buffer_printf(out, "%s%s", i ? "<" : "",
                              cpprof__strings_text(&p->strings, name));
    }
}

/* All stacks, "leaf caller=value", parted by "; ". */
static void
expect_stacks(struct pprof_profile *p, const char *text)
{
    struct cpprof__buffer out = {0};
    size_t i, j;

    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];

        for (j = 0; j < s->n_frames; j++) {
            cpprof__buffer_printf(&out, "%s", j ? " " : i ? "; " : "");
            put_location(&out, p, p->frames.at[s->first_frame + j]);
        }
        cpprof__buffer_printf(&out, "=%" PRId64, cpprof__values(p, i)[1]);
    }
    cpprof__buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, text);
    cpprof__buffer_free(&out);
    pprof_free(p);
}

static struct cpprof__regexp *
regexp(const char *text)
{
    struct cpprof__regexp *r = NULL;

    if (text)
        assert_int_equal(cpprof__regexp_make(text, "test", &r, NULL),
                         CPPROF_OK);
    return r;
}

/* ------------------------------------------------------------- names ---- */

struct names {
    const char *focus, *ignore, *hide, *show;
    const char *stacks;
    struct cpprof__name_matches matches;
};

static void
filter_by_name(const struct names *n)
{
    struct cpprof__name_filter filter = {regexp(n->focus), regexp(n->ignore),
                                         regexp(n->hide), regexp(n->show)};
    struct cpprof__name_matches matches;
    struct pprof_profile *p = make("", "");

    assert_int_equal(cpprof__filter_names(p, &filter, &matches, NULL),
                     CPPROF_OK);
    assert_memory_equal(&matches, &n->matches, sizeof matches);
    expect_stacks(p, n->stacks);
    cpprof__regexp_free(filter.focus);
    cpprof__regexp_free(filter.ignore);
    cpprof__regexp_free(filter.hide);
    cpprof__regexp_free(filter.show);
}

static void
names_keep_and_drop_samples_and_frames(void **state)
{
    static const struct names cases[] = {
        {NULL,
         NULL,
         NULL,
         NULL,
         "read get<map main=1; free put main=2; main=3",
         {1, 0, 0, 0}},
        {"read", NULL, NULL, NULL, "read get<map main=1", {1, 0, 0, 0}},
        {"map|put",
         NULL,
         NULL,
         NULL,
         "read get<map main=1; free put main=2",
         {1, 0, 0, 0}},
        {"nothing", NULL, NULL, NULL, "", {0, 0, 0, 0}},
        {NULL, "get", NULL, NULL, "free put main=2; main=3", {1, 1, 0, 0}},
        {"main",
         "put",
         NULL,
         NULL,
         "read get<map main=1; main=3",
         {1, 1, 0, 0}},
        /* Both match main: it is ignored. */
        {"main", "main", NULL, NULL, "", {0, 1, 0, 0}},
        {NULL, NULL, "main", NULL, "read get<map=1; free put=2", {1, 0, 1, 0}},
        {NULL,
         NULL,
         "map",
         NULL,
         "read get main=1; free put main=2; main=3",
         {1, 0, 1, 0}},
        {NULL,
         NULL,
         "get|map",
         NULL,
         "read main=1; free put main=2; main=3",
         {1, 0, 1, 0}},
        {NULL, NULL, NULL, "get|free", "get=1; free=2", {1, 0, 0, 1}},
        {NULL, NULL, "a", "[ae]", "get=1; free put=2", {1, 0, 1, 1}},
        /* The file of the mapping is a name of all its frames, too. */
        {"/bin/prog",
         NULL,
         NULL,
         NULL,
         "read get<map main=1; free put main=2; main=3",
         {1, 0, 0, 0}},
        {NULL, NULL, "prog$", NULL, "", {1, 0, 1, 0}},
        {NULL,
         NULL,
         NULL,
         "prog$",
         "read get<map main=1; free put main=2; main=3",
         {1, 0, 0, 1}},
        /* And so is the source file. */
        {NULL, "file\\.c", NULL, NULL, "", {0, 1, 0, 0}},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        filter_by_name(&cases[i]);
}

static void
show_from_cuts_what_is_above(void **state)
{
    static const struct {
        const char *show_from, *stacks;
        bool matched;
    } cases[] = {
        {NULL, "read get<map main=1; free put main=2; main=3", false},
        {"main", "read get<map main=1; free put main=2; main=3", true},
        {"map", "read get<map=1", true},
        {"get", "read get=1", true},
        {"put|read", "read=1; free put=2", true},
        {"nothing", "", false},
        {"bin/prog", "read get<map main=1; free put main=2; main=3", true},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof__regexp *r = regexp(cases[i].show_from);
        struct pprof_profile *p = make("", "");
        bool matched;

        assert_int_equal(cpprof__show_from(p, r, &matched, NULL), CPPROF_OK);
        assert_int_equal(matched, cases[i].matched);
        expect_stacks(p, cases[i].stacks);
        cpprof__regexp_free(r);
    }
}

/* ----------------------------------------------------------- pruning ---- */

static void
prune_from_cuts_what_is_below(void **state)
{
    static const char *const cases[][2] = {
        {"main", "main=1; main=2; main=3"},
        {"map", "map main=1; free put main=2; main=3"},
        {"get", "get<map main=1; free put main=2; main=3"},
        {"^ge$", "read get<map main=1; free put main=2; main=3"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpprof__regexp *r = regexp(cases[i][0]);
        struct pprof_profile *p = make("", "");

        assert_int_equal(cpprof__prune_from(p, r, NULL), CPPROF_OK);
        expect_stacks(p, cases[i][1]);
        cpprof__regexp_free(r);
    }
}

static void
drop_frames_go_with_what_is_below(void **state)
{
    static const char *const cases[][3] = {
        {"", "", "read get<map main=1; free put main=2; main=3"},
        {"get", "", "map main=1; free put main=2; main=3"},
        {"map", "", "main=1; free put main=2; main=3"},
        /* The whole name has to match. */
        {"ge", "", "read get<map main=1; free put main=2; main=3"},
        {"put|.*e.*", "put", "map main=1; put main=2; main=3"},
        /* What no frame of the program calls stays. */
        {"main", "", "read get<map main=1; free put main=2; main=3"},
        {"main|read", "", "get<map main=1; free put main=2; main=3"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = make(cases[i][0], cases[i][1]);

        assert_int_equal(pprof_drop_frames(p, NULL), CPPROF_OK);
        expect_stacks(p, cases[i][2]);
    }
}

static void
drop_frames_that_are_no_expression_change_nothing(void **state)
{
    struct pprof_profile *p = make("get)", "");
    struct cpprof_error error = {0};

    assert_int_equal(pprof_drop_frames(p, &error), CPPROF_BAD_DATA);
    assert_string_equal(error.text, "failed to compile regexp get): error "
                                    "parsing regexp: unexpected ): `^(get))$`");
    expect_stacks(p, "read get<map main=1; free put main=2; main=3");
}

/* Parameters, and the dot of the PPC ABI, are not part of the name. */
static void
drop_frames_match_simplified_names(void **state)
{
    static const char *const cases[][2] = {
        {"foo(int)", "foo"},
        {".foo", "foo"},
        {"(anonymous_namespace)", ""},
        {"A::operator()(int)", "A::operator\\(\\)"},
        {"A::operator()::x(y)", "A::operator\\(\\)::x"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f = {0};
        struct pprof_profile *p;
        char stack[64];

        fixture_cpu(&f);
        snprintf(stack, sizeof stack, "leaf %s main", cases[i][0]);
        fixture_stack(&f, stack, 1, NULL);
        cpprof__put_uint(&f.bytes, 7, fixture_string(&f, cases[i][1]));
        p = fixture_must_read(&f);
        assert_int_equal(pprof_drop_frames(p, NULL), CPPROF_OK);
        expect_stacks(p, *cases[i][1] ? "main=1"
                                      : "leaf (anonymous_namespace) main=1");
    }
}

/* ------------------------------------------------------------- labels ---- */

static void
filter_by_tag(const char *focus, const char *ignore, const char *stacks,
              bool focused, bool ignored)
{
    struct cpprof__label_units units = {0};
    struct pprof_profile *p = make("", "");
    bool matched[2];

    assert_int_equal(cpprof__label_units_make(p, &units, NULL), CPPROF_OK);
    assert_int_equal(
        cpprof__filter_tags(p, &units, focus, ignore, matched, NULL),
        CPPROF_OK);
    assert_int_equal(matched[0], focused);
    assert_int_equal(matched[1], ignored);
    expect_stacks(p, stacks);
    cpprof__label_units_free(&units);
}

#define ONE   "read get<map main=1"
#define TWO   "free put main=2"
#define THREE "main=3"

static void
text_labels_keep_and_drop_samples(void **state)
{
    filter_by_tag(NULL, "", ONE "; " TWO "; " THREE, true, true);
    filter_by_tag("v1", NULL, ONE, true, false);
    filter_by_tag("k:v", NULL, ONE "; " TWO, true, false);
    filter_by_tag("v2,x", NULL, TWO, true, false);
    filter_by_tag("v1,x", NULL, "", false, false);
    filter_by_tag("k=v[12]", NULL, ONE "; " TWO, true, false);
    filter_by_tag("k=^1,2$", NULL, TWO, true, false);
    filter_by_tag("j=v", NULL, "", false, false);
    filter_by_tag("nokey=v", NULL, "", false, false);
    filter_by_tag(NULL, "v2", ONE "; " THREE, true, true);
    filter_by_tag("k=v", "j=x", ONE, true, true);
}

static void
numeric_labels_are_ranges_with_units(void **state)
{
    filter_by_tag("64kb", NULL, ONE, true, false);
    filter_by_tag("65536b", NULL, ONE, true, false);
    filter_by_tag("65kb:", NULL, TWO, true, false);
    filter_by_tag(":64kb", NULL, ONE, true, false);
    filter_by_tag("1kb:4mb", NULL, ONE "; " TWO, true, false);
    filter_by_tag("n=1mb:", NULL, TWO, true, false);
    filter_by_tag("m=1mb:", NULL, "", false, false);
    filter_by_tag("10s:", NULL, "", false, false);
    filter_by_tag(NULL, "+1kb:1mb", TWO "; " THREE, true, true);
    /* Not a range, so an expression. */
    filter_by_tag("1kb:4mb:", NULL, "", false, false);
    filter_by_tag("1kb:3s", NULL, "", false, false);
}

static void
label_keys_are_shown_and_hidden(void **state)
{
    struct cpprof__regexp *show = regexp("k|n"), *hide = regexp("n");
    struct pprof_profile *p = make("", "");
    struct pprof_sample s;
    bool matched[2];

    assert_int_equal(cpprof__filter_tag_keys(p, show, hide, matched, NULL),
                     CPPROF_OK);
    assert_true(matched[0] && matched[1]);
    s = sample_of(p, 1);
    assert_int_equal(s.n_labels, 1);
    assert_string_equal(pprof_text(p, s.labels[0].key, NULL), "k");
    assert_int_equal(sample_of(p, 2).n_labels, 0);
    cpprof__regexp_free(show);
    cpprof__regexp_free(hide);
    pprof_free(p);
}

static void
labels_become_frames_at_root_and_leaf(void **state)
{
    struct pprof_profile *p = make("", "");
    bool matched[2];

    assert_int_equal(
        cpprof__add_tag_frames(p, "k,,n", "j", "minimum", matched, NULL),
        CPPROF_OK);
    assert_true(matched[0] && matched[1]);
    expect_stacks(p, " read get<map main 64kB v1=1; x free put main 4MB v2=2; "
                     " main  =3");
}

/* And not of the label sets, among which that of no labels is the first. */
static void
tag_frames_are_numbered_in_the_order_of_samples(void **state)
{
    static const char *const want[] = {"v1", "v2", ""};
    struct pprof_profile *p = make("", "");
    size_t n = pprof_location_count(p), i;
    bool matched[2];

    assert_int_equal(
        cpprof__add_tag_frames(p, "k", "", "minimum", matched, NULL),
        CPPROF_OK);
    assert_int_equal(pprof_location_count(p), n + 3);
    for (i = 0; i < 3; i++) {
        const struct pprof_location *l = &pprof_locations(p)[n + i];
        uint32_t function = pprof_lines(p)[l->first_line].function;

        assert_string_equal(
            pprof_text(p, pprof_functions(p)[function].name, NULL), want[i]);
    }
    pprof_free(p);
}

static void
key_that_no_sample_has_is_told(void **state)
{
    struct pprof_profile *p = make("", "");
    bool matched[2];

    assert_int_equal(
        cpprof__add_tag_frames(p, "none", "", "minimum", matched, NULL),
        CPPROF_OK);
    assert_false(matched[0] || matched[1]);
    expect_stacks(p, "read get<map main =1; free put main =2; main =3");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_keep_and_drop_samples_and_frames),
        cmocka_unit_test(show_from_cuts_what_is_above),
        cmocka_unit_test(prune_from_cuts_what_is_below),
        cmocka_unit_test(drop_frames_go_with_what_is_below),
        cmocka_unit_test(drop_frames_that_are_no_expression_change_nothing),
        cmocka_unit_test(drop_frames_match_simplified_names),
        cmocka_unit_test(text_labels_keep_and_drop_samples),
        cmocka_unit_test(numeric_labels_are_ranges_with_units),
        cmocka_unit_test(label_keys_are_shown_and_hidden),
        cmocka_unit_test(labels_become_frames_at_root_and_leaf),
        cmocka_unit_test(tag_frames_are_numbered_in_the_order_of_samples),
        cmocka_unit_test(key_that_no_sample_has_is_told),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
