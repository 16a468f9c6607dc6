/* SPDX-License-Identifier: MIT */
/*
 * The reference's tests of merging, comparing and scaling: the same profiles,
 * the same results (profile/profile_test.go, profile/merge_test.go).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"
#include "profile/model/id_map.h"
#include "profile/model/model.h"
#include "views.h"

static struct pprof_profile *
make(void)
{
    return reference_profile(reference_values, 1);
}

/* The sum of n profiles, which are freed. */
static struct pprof_profile *
merge(struct pprof_profile **profiles, size_t n)
{
    struct pprof_profile *merged = NULL;
    struct cpprof_error error = {0};
    size_t i;

    if (pprof_merge(profiles, n, &merged, &error))
        fail_msg("%s", error.text);
    assert_int_equal(pprof_check(merged, NULL), CPPROF_OK);
    for (i = 0; i < n; i++)
        pprof_free(profiles[i]);
    return merged;
}

/* ------------------------------------------------------------- merge ---- */

static void
main_mapping_stays_first(void **state)
{
    struct pprof_profile *p = make();

    p = merge(&p, 1);
    assert_string_equal(reference_text(p, pprof_mappings(p)[0].file),
                        "/bin/main");
    /* Only two are needed. */
    assert_int_equal(pprof_mapping_count(p), 2);
    assert_int_equal(pprof_location_count(p), 5);
    pprof_free(p);
}

static void
twice_and_minus_twice_is_nothing(void **state)
{
    struct pprof_profile *all[2] = {make(), make()}, *minus = make();

    pprof_add_comment(all[0], "comment1", NULL);
    pprof_add_comment(all[1], "comment1", NULL);
    pprof_add_comment(minus, "comment1", NULL);
    all[0] = merge(all, 2);
    assert_int_equal(sample_of(all[0], 0).values[0], 2000);
    pprof_scale(minus, -2);
    all[1] = minus;
    all[0] = merge(all, 2);
    assert_int_equal(pprof_sample_count(all[0]), 0);
    assert_int_equal(pprof_location_count(all[0]), 0);
    assert_int_equal(pprof_comment_count(all[0]), 1);
    pprof_free(all[0]);
}

static void
profile_may_be_merged_with_itself(void **state)
{
    struct pprof_profile *p = make(), *twice[] = {p, p}, *merged = NULL;

    assert_int_equal(pprof_merge(twice, 2, &merged, NULL), CPPROF_OK);
    assert_int_equal(pprof_sample_count(merged), 5);
    assert_int_equal(sample_of(merged, 3).values[1], 20000);
    pprof_free(merged);
    pprof_free(p);
}

static void
ten_profiles_add_up(void **state)
{
    struct pprof_profile *all[10], *one = make(), *p;
    size_t i;

    for (i = 0; i < 10; i++)
        all[i] = make();
    p = merge(all, 10);
    assert_int_equal(pprof_sample_count(p), 5);
    for (i = 0; i < 5; i++)
        assert_int_equal(sum_of_stack(p, one, i), reference_values[i][0] * 10);
    assert_int_equal(info_of(p).duration_ns, 100000000000);
    pprof_free(p);
    pprof_free(one);
}

static struct pprof_profile *
folded(void)
{
    struct pprof_profile *p = make();

    p->locations.at[0].flags |= PPROF_FOLDED;
    p->locations.at[1].flags |= PPROF_FOLDED;
    return p;
}

static void
folded_locations_are_kept_apart(void **state)
{
    struct pprof_profile *different[] = {make(), folded()}, *p;
    struct pprof_profile *same[] = {folded(), folded()};

    p = merge(different, 2);
    assert_int_equal(pprof_location_count(p), 7);
    pprof_free(p);
    p = merge(same, 2);
    assert_int_equal(pprof_location_count(p), 5);
    pprof_free(p);
}

static void
units_of_labels_keep_samples_apart(void **state)
{
    static const char *const labels[] = {"key1=10bytes key2=30bytes",
                                         "key1=10kilobytes key2=30kilobytes"};
    struct pprof_profile *all[] = {reference_labelled(labels, 1),
                                   reference_labelled(labels, 2)};
    struct pprof_profile *p = merge(all, 2);

    expect_labels(p, "key1=10bytes key2=30bytes; "
                     "key1=10kilobytes key2=30kilobytes");
    assert_int_equal(sample_of(p, 0).values[0], 2000);
    assert_int_equal(sample_of(p, 1).values[0], 1000);
    pprof_free(p);
}

static void
profile_without_mappings_can_be_merged(void **state)
{
    struct pprof_profile *all[] = {reference_profile(reference_values, 0),
                                   make()};
    struct pprof_profile *minus = reference_profile(reference_values, 0), *p;
    struct pprof_profile *one = make();
    size_t i;

    p = merge(all, 2);
    assert_int_equal(pprof_sample_count(p), 10);
    pprof_scale(minus, -2);
    all[0] = p;
    all[1] = minus;
    p = merge(all, 2);
    for (i = 0; i < 5; i++)
        assert_int_equal(sum_of_stack(p, one, i), 0);
    pprof_free(p);
    pprof_free(one);
}

struct mapping {
    uint64_t start, limit, offset;
    const char *file, *build_id;
};

static struct pprof_profile *
mapped(const struct mapping *m)
{
    static const uint64_t stack[] = {1};
    static const int64_t values[] = {1, 1};
    struct fixture f = {0};
    size_t mark;

    reference_types(&f);
    mark = cpprof__put_begin(&f.bytes);
    cpprof__put_uint(&f.bytes, 1, 1);
    cpprof__put_uint_opt(&f.bytes, 2, m->start);
    cpprof__put_uint_opt(&f.bytes, 3, m->limit);
    cpprof__put_uint_opt(&f.bytes, 4, m->offset);
    cpprof__put_uint_opt(&f.bytes, 5, fixture_string(&f, m->file));
    cpprof__put_uint_opt(&f.bytes, 6, fixture_string(&f, m->build_id));
    cpprof__put_end(&f.bytes, 3, mark);
    fixture_location(&f, 1, 1, m->start + 8, 0);
    fixture_sample(&f, stack, 1, values, NULL);
    return fixture_must_read(&f);
}

static void
mappings_are_the_same_as_in_the_reference(void **state)
{
    static const struct {
        struct mapping a, b;
        size_t n;
    } cases[] = {
        {{0, 0, 0, "file 1", ""}, {0, 0, 0, "file 1", ""}, 1},
        {{0, 0, 0, "", "id 1"}, {0, 0, 0, "", "id 1"}, 1},
        {{0, 0, 0, "a", "id 1"}, {0, 0, 0, "b", "id 1"}, 1},
        {{0, 0, 0, "", ""}, {0, 0, 0, "", ""}, 1},
        {{0x1000, 0x2000, 0, "", "id"}, {0x3000, 0x4000, 0, "", "id"}, 1},
        {{0x1000, 0x2000, 0, "", "id"}, {0x3000, 0x3f00, 0, "", "id"}, 1},
        {{0, 0, 0, "file 2", ""}, {0, 0, 0, "file 3", ""}, 2},
        {{0, 0, 0, "", "id 3"}, {0, 0, 0, "", "id 4"}, 2},
        {{0x1000, 0x3000, 0, "", "id"}, {0x1000, 0x5000, 0, "", "id"}, 2},
        {{0, 0, 1, "", "id"}, {0, 0, 2, "", "id"}, 2},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *all[] = {mapped(&cases[i].a),
                                       mapped(&cases[i].b)};
        struct pprof_profile *p = merge(all, 2);

        assert_int_equal(pprof_mapping_count(p), cases[i].n);
        assert_int_equal(pprof_sample_count(p), cases[i].n);
        assert_int_equal(pprof_mappings(p)[0].start, cases[i].a.start);
        assert_int_equal(pprof_locations(p)[0].address, cases[i].a.start + 8);
        pprof_free(p);
    }
}

static struct pprof_profile *
documented(const char *url)
{
    struct fixture f = {0};

    reference_types(&f);
    cpprof__put_uint_opt(&f.bytes, 15, fixture_string(&f, url));
    return fixture_must_read(&f);
}

static void
first_doc_url_is_kept(void **state)
{
    static const char *const cases[][4] = {
        {"", "", "", ""},
        {"url1", "", "", "url1"},
        {"", "url2", "", "url2"},
        {"url1", "url2", "url1", "url1"},
        {"", "url3", "url2", "url3"},
    };
    size_t i, j;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *all[3], *p;

        for (j = 0; j < 3; j++)
            all[j] = documented(cases[i][j]);
        p = merge(all, 3);
        assert_string_equal(reference_text(p, info_of(p).doc_url), cases[i][3]);
        pprof_free(p);
    }
}

static void
sparse_ids_are_found(void **state)
{
    static const uint64_t ids[] = {1, 2, 5, 9, 10, 11, 100, 1000, 1000000};
    static const uint64_t missing[] = {0, 3, 4, 200, 999999, UINT64_MAX};
    struct pprof_function functions[9] = {0};
    struct cpprof__id_map map;
    size_t i;

    for (i = 0; i < 9; i++)
        functions[i].id = ids[i];
    assert_true(cpprof__id_map_make(&map, functions, 9, sizeof functions[0]));
    for (i = 0; i < 9; i++)
        assert_int_equal(cpprof__id_map_get(&map, ids[i]), i);
    for (i = 0; i < sizeof missing / sizeof missing[0]; i++)
        assert_int_equal(cpprof__id_map_get(&map, missing[i]),
                         CPPROF__NO_INDEX);
    cpprof__id_map_free(&map);
}

/* ------------------------------------------------------ common types ---- */

/* Two samples of other locations, with values 1, 2, ... and 10, 20, ... of
 * types that are parted by spaces. */
static struct pprof_profile *
typed(const char *types, const char *default_type)
{
    struct fixture f = {0};
    char *copy = strdup(types), *next = copy, *type;
    uint64_t values[8], n = 0, i, j;

    while ((type = strsep(&next, " "))) {
        fixture_value_type(&f, 1, type, type + strlen(type) - 1);
        n++;
    }
    free(copy);
    for (i = 1; i <= 2; i++) {
        size_t mark;

        fixture_location(&f, i, 0, i, 0);
        for (j = 0; j < n; j++)
            values[j] = (j + 1) * (i == 1 ? 1 : 10);
        mark = cpprof__put_begin(&f.bytes);
        cpprof__put_uint(&f.bytes, 1, i);
        cpprof__put_uints(&f.bytes, 2, values, n);
        cpprof__put_end(&f.bytes, 2, mark);
    }
    cpprof__put_uint_opt(&f.bytes, 14, fixture_string(&f, default_type));
    return fixture_must_read(&f);
}

static void
expect_types(const struct pprof_profile *p, const char *types,
             const char *default_type, const int64_t *values)
{
    struct cpprof__buffer out = {0};
    size_t n = pprof_sample_type_count(p), i;

    for (i = 0; i < n; i++) {
        const struct pprof_value_type *t = &pprof_sample_types(p)[i];

        cpprof__buffer_printf(&out, "%s%s", i ? " " : "",
                              reference_text(p, t->type));
        assert_int_equal(sample_of(p, 0).values[i], values[i]);
        assert_int_equal(sample_of(p, 1).values[i], values[i] * 10);
    }
    cpprof__buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, types);
    assert_string_equal(reference_text(p, info_of(p).default_sample_type),
                        default_type);
    cpprof__buffer_free(&out);
}

/* The other profile has no samples left, so that the values are those of the
 * first one; and the other way round. */
static void
types_become_the_common_ones(void **state)
{
    static const struct {
        const char *types[2], *default_types[2];
        const char *common, *new_default;
        int64_t values[2][3];
    } cases[] = {
        {{"delete1 delete2 keep1 keep2 keep3", "keep1 keep2 keep3"},
         {"delete1", "keep1"},
         "keep1 keep2 keep3",
         "keep1",
         {{3, 4, 5}, {1, 2, 3}}},
        {{"keep1 keep2 keep3 delete1 delete2", "keep1 keep2 keep3"},
         {"delete2", "keep2"},
         "keep1 keep2 keep3",
         "keep1",
         {{1, 2, 3}, {1, 2, 3}}},
        {{"delete1 keep1 delete2 keep2 keep3", "keep3 keep2 keep1"},
         {"keep3", "keep2"},
         "keep1 keep2 keep3",
         "keep3",
         {{2, 4, 5}, {3, 2, 1}}},
    };
    size_t i, which;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (which = 0; which < 2; which++) {
            struct pprof_profile *all[2], *p;

            all[0] = typed(cases[i].types[0], cases[i].default_types[0]);
            all[1] = typed(cases[i].types[1], cases[i].default_types[1]);
            pprof_scale(all[1 - which], 0);
            p = merge(all, 2);
            expect_types(p, cases[i].common, cases[i].new_default,
                         cases[i].values[which]);
            pprof_free(p);
        }
}

static void
profiles_without_common_type_are_refused(void **state)
{
    struct pprof_profile *all[] = {typed("keep1 keep2 keep3", ""),
                                   typed("keep4 keep5", "")};
    struct pprof_profile *merged = NULL;
    struct cpprof_error error = {0};

    assert_int_equal(pprof_merge(all, 2, &merged, &error), CPPROF_INVALID);
    assert_null(merged);
    assert_string_equal(error.text,
                        "profiles have empty common sample type list");
    assert_int_equal(pprof_merge(all, 0, &merged, &error), CPPROF_INVALID);
    assert_string_equal(error.text, "no profiles to merge");
    pprof_free(all[0]);
    pprof_free(all[1]);
}

/* ------------------------------------------------ scale and normalize ---- */

static void
expect_values(const struct pprof_profile *p, const int64_t values[][2],
              size_t n, int64_t factor)
{
    size_t i;

    assert_int_equal(pprof_sample_count(p), n);
    for (i = 0; i < n; i++) {
        const int64_t *v = sample_of(p, i).values;

        assert_int_equal(v[0], values[i][0] * factor);
        assert_int_equal(v[1], values[i][1] * factor);
    }
}

static void
normalized_by_the_same_is_the_same(void **state)
{
    struct pprof_profile *p = make(), *base = make();

    assert_int_equal(pprof_normalize(p, base, NULL), CPPROF_OK);
    expect_values(p, reference_values, 5, 1);
    pprof_scale(base, 10);
    assert_int_equal(pprof_normalize(p, base, NULL), CPPROF_OK);
    expect_values(p, reference_values, 5, 10);
    pprof_free(p);
    pprof_free(base);
}

/* Only what is scaled decides what is kept: the last value has ratio 1, and
 * the count of two samples becomes 0. */
static void
normalized_by_another_is_rounded(void **state)
{
    static const int64_t values[][2] = {{20, 1000}, {2, 100}, {199, 10000}};
    struct pprof_profile *p = make();
    struct pprof_profile *base = reference_profile(reference_other_values, 1);

    assert_int_equal(pprof_normalize(p, base, NULL), CPPROF_OK);
    expect_values(p, values, 3, 1);
    pprof_free(p);
    pprof_free(base);
}

static void
normalizing_by_other_types_is_refused(void **state)
{
    struct pprof_profile *p = make(), *base = typed("samples", "");
    struct cpprof_error error = {0};

    assert_int_equal(pprof_normalize(p, base, &error), CPPROF_INVALID);
    assert_non_null(strstr(error.text, "incompatible"));
    expect_values(p, reference_values, 5, 1);
    pprof_free(p);
    pprof_free(base);
}

static void
scaling_rounds_and_drops_zeros(void **state)
{
    static const int64_t tenth[][2] = {
        {100, 100}, {10, 10}, {1, 1}, {1000, 1000}};
    struct pprof_profile *p = make();
    struct cpprof_error error = {0};

    pprof_scale(p, 0.1);
    expect_values(p, tenth, 4, 1);
    assert_int_equal(pprof_scale_types(p, (double[]){1, 2, 3}, 3, &error),
                     CPPROF_INVALID);
    assert_string_equal(error.text, "mismatched scale ratios, got 3, want 2");
    pprof_scale(p, 0);
    assert_int_equal(pprof_sample_count(p), 0);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(main_mapping_stays_first),
        cmocka_unit_test(twice_and_minus_twice_is_nothing),
        cmocka_unit_test(profile_may_be_merged_with_itself),
        cmocka_unit_test(ten_profiles_add_up),
        cmocka_unit_test(folded_locations_are_kept_apart),
        cmocka_unit_test(units_of_labels_keep_samples_apart),
        cmocka_unit_test(profile_without_mappings_can_be_merged),
        cmocka_unit_test(mappings_are_the_same_as_in_the_reference),
        cmocka_unit_test(first_doc_url_is_kept),
        cmocka_unit_test(sparse_ids_are_found),
        cmocka_unit_test(types_become_the_common_ones),
        cmocka_unit_test(profiles_without_common_type_are_refused),
        cmocka_unit_test(normalized_by_the_same_is_the_same),
        cmocka_unit_test(normalized_by_another_is_rounded),
        cmocka_unit_test(normalizing_by_other_types_is_refused),
        cmocka_unit_test(scaling_rounds_and_drops_zeros),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
