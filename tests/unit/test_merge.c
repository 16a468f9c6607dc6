/* SPDX-License-Identifier: MIT */
/* Adding, subtracting and scaling profiles. */
#include "pprof_fixture.h"
#include "views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A profile of three stacks, all values times `sign`. */
static struct pprof_profile *
make(int64_t sign, uint64_t time_ns, const char *comment)
{
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "");
    fixture_stack(&f, "a main", sign * 10, "k=v n=5kb");
    fixture_stack(&f, "b<a main", sign * 20, NULL);
    fixture_stack(&f, "b<a main", sign * 30, "k=v");
    cpprof__put_uint(&f.bytes, 9, time_ns);
    cpprof__put_uint(&f.bytes, 10, 7);
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, comment));
    return fixture_must_read(&f);
}

/* Merge and free n profiles; NULL if they do not go together. */
static struct pprof_profile *
merge(struct pprof_profile **profiles, size_t n, struct cpprof_error *error)
{
    struct pprof_merger *merger = NULL;
    struct pprof_profile *merged = NULL;
    enum cpprof_status status = pprof_merger_new(&merger, error);
    size_t i;

    for (i = 0; i < n; i++) {
        if (status == CPPROF_OK)
            status = pprof_merger_add(merger, profiles[i], error);
        pprof_free(profiles[i]);
    }
    if (status == CPPROF_OK)
        status = pprof_merger_finish(merger, &merged, error);
    pprof_merger_free(merger);
    if (merged)
        assert_int_equal(pprof_check(merged, error), CPPROF_OK);
    return merged;
}

static const char *
text_of(const struct pprof_profile *p, uint32_t string)
{
    return pprof_text(p, string, NULL);
}

static void
equal_profiles_add_up(void **state)
{
    struct pprof_profile *all[10], *p;
    struct pprof_info info;
    size_t i;

    for (i = 0; i < 10; i++)
        all[i] = make(1, 100 + i, i % 2 ? "odd" : "even");
    p = merge(all, 10, NULL);
    info = info_of(p);
    assert_int_equal(pprof_sample_count(p), 3);
    assert_int_equal(pprof_location_count(p), 3);
    assert_int_equal(pprof_function_count(p), 3);
    assert_int_equal(pprof_mapping_count(p), 1);
    assert_int_equal(pprof_comment_count(p), 2);
    assert_int_equal(info.time_ns, 100);
    assert_int_equal(info.duration_ns, 70);
    assert_int_equal(info.period, 10000000);
    assert_int_equal(sample_of(p, 0).values[0], 10);
    assert_int_equal(sample_of(p, 0).values[1], 100);
    assert_int_equal(sample_of(p, 2).values[1], 300);
    assert_int_equal(pprof_locations(p)[2].id, 3);
    pprof_free(p);
}

static void
profile_minus_itself_is_empty(void **state)
{
    struct pprof_profile *all[3] = {make(1, 1, "x"), make(1, 1, "x"),
                                    make(2, 1, "x")};
    struct pprof_profile *p;

    /* One sample each, so the counts cancel out as well. */
    pprof_scale(all[1], -1);
    p = merge(all, 2, NULL);
    assert_int_equal(pprof_sample_count(p), 0);
    assert_int_equal(pprof_location_count(p), 0);
    assert_int_equal(pprof_function_count(p), 0);
    assert_int_equal(pprof_mapping_count(p), 1);
    assert_int_equal(pprof_sample_type_count(p), 2);
    pprof_free(p);
    pprof_free(all[2]);
}

/* The same binary at another address: its instructions are the same ones. */
static void
program_that_was_loaded_elsewhere_is_the_same(void **state)
{
    const int64_t values[] = {1, 5};
    const uint64_t stack[] = {1, 2};
    struct pprof_profile *all[2], *p;
    size_t i;

    for (i = 0; i < 2; i++) {
        struct fixture f = {0};
        uint64_t start = i ? 0x70000 : 0x1000;

        fixture_cpu(&f);
        fixture_mapping(&f, 7, start, i ? "/old" : "/new", "same id");
        fixture_location(&f, 1, 7, start + 0x10, 0);
        fixture_location(&f, 2, 7, start + 0x20, 0);
        fixture_sample(&f, stack, 2, values, NULL);
        all[i] = fixture_must_read(&f);
    }
    p = merge(all, 2, NULL);
    assert_int_equal(pprof_mapping_count(p), 1);
    assert_int_equal(pprof_location_count(p), 2);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_int_equal(sample_of(p, 0).values[1], 10);
    assert_int_equal(pprof_locations(p)[1].address, 0x1020);
    assert_string_equal(text_of(p, pprof_mappings(p)[0].file), "/new");
    pprof_free(p);
}

static void
labels_and_their_units_keep_samples_apart(void **state)
{
    struct fixture f = {0};
    struct pprof_profile *p;

    fixture_cpu(&f);
    fixture_stack(&f, "a", 1, "n=5kb");
    fixture_stack(&f, "a", 2, "n=5mb");
    fixture_stack(&f, "a", 4, "n=5kb");
    fixture_stack(&f, "a", 8, "k=x j=y");
    fixture_stack(&f, "a", 16, "j=y k=x");
    p = fixture_must_read(&f);
    p = merge(&p, 1, NULL);
    assert_int_equal(pprof_sample_count(p), 3);
    assert_int_equal(sample_of(p, 0).values[1], 5);
    assert_int_equal(sample_of(p, 1).values[1], 2);
    assert_int_equal(sample_of(p, 2).values[1], 24);
    pprof_free(p);
}

/* A profile with one sample of the given types and values. */
static struct pprof_profile *
typed(const char *const types[][2], size_t n, const int64_t *values,
      const char *default_type)
{
    struct fixture f = {0};
    size_t mark, i;

    for (i = 0; i < n; i++)
        fixture_value_type(&f, 1, types[i][0], types[i][1]);
    fixture_location(&f, 1, 0, 1, 0);
    mark = cpprof__put_begin(&f.bytes);
    cpprof__put_uint(&f.bytes, 1, 1);
    cpprof__put_uints(&f.bytes, 2, (const uint64_t *)values, n);
    cpprof__put_end(&f.bytes, 2, mark);
    cpprof__put_uint(&f.bytes, 14, fixture_string(&f, default_type));
    return fixture_must_read(&f);
}

static void
common_types_are_kept_in_the_first_ones_order(void **state)
{
    static const char *const abc[][2] = {{"a", "x"}, {"b", "x"}, {"c", "x"}};
    static const char *const cb[][2] = {{"c", "x"}, {"b", "x"}};
    const int64_t three[] = {1, 2, 3}, two[] = {40, 50};
    struct pprof_profile *all[] = {typed(abc, 3, three, "a"),
                                   typed(cb, 2, two, "")};
    struct pprof_profile *p = merge(all, 2, NULL);

    assert_int_equal(pprof_sample_type_count(p), 2);
    assert_string_equal(text_of(p, pprof_sample_types(p)[0].type), "b");
    assert_string_equal(text_of(p, info_of(p).default_sample_type), "b");
    assert_int_equal(sample_of(p, 0).values[0], 52);
    assert_int_equal(sample_of(p, 0).values[1], 43);
    pprof_free(p);
}

/* Whichever comes first. */
static void
units_become_the_finer_ones(void **state)
{
    static const char *const fine[][2] = {{"time", "microseconds"}};
    static const char *const coarse[][2] = {{"time", "seconds"}};
    const int64_t one = 1, two = 2;
    size_t i;

    for (i = 0; i < 2; i++) {
        struct pprof_profile *all[2], *p;

        all[i] = typed(fine, 1, &one, "");
        all[1 - i] = typed(coarse, 1, &two, "");
        p = merge(all, 2, NULL);
        assert_int_equal(sample_of(p, 0).values[0], 2000001);
        assert_string_equal(text_of(p, pprof_sample_types(p)[0].unit),
                            "microseconds");
        pprof_free(p);
    }
}

static void
types_that_do_not_go_together_are_refused(void **state)
{
    static const char *const types[][2] = {
        {"a", "ns"}, {"b", "ns"}, {"a", "bytes"}};
    static const char *const texts[] = {
        "profiles have empty common sample type list",
        "sample types: incompatible types: {a ns} {a bytes}"};
    const int64_t one = 1;
    size_t i;

    for (i = 0; i < 2; i++) {
        struct pprof_profile *all[] = {typed(types, 1, &one, ""),
                                       typed(types + 1 + i, 1, &one, "")};
        struct cpprof_error error = {0};

        assert_null(merge(all, 2, &error));
        assert_string_equal(error.text, texts[i]);
        assert_int_equal(error.status, CPPROF_INVALID);
    }
}

static void
period_types_that_differ_are_refused(void **state)
{
    struct pprof_profile *all[2];
    struct cpprof_error error = {0};
    struct fixture f = {0};

    fixture_value_type(&f, 1, "cpu", "nanoseconds");
    fixture_value_type(&f, 11, "space", "bytes");
    all[0] = fixture_must_read(&f);
    fixture_cpu(&f);
    all[1] = fixture_must_read(&f);
    assert_null(merge(all, 2, &error));
    assert_string_equal(error.text, "period type: incompatible types: {space "
                                    "bytes} {cpu nanoseconds}");
}

static void
nothing_to_merge_is_an_error(void **state)
{
    struct cpprof_error error = {0};

    assert_null(merge(NULL, 0, &error));
    assert_string_equal(error.text, "no profiles to merge");
}

static void
values_are_rounded_and_zeros_dropped(void **state)
{
    struct pprof_profile *p = make(1, 1, "x");
    const double ratios[] = {1, 0.05};

    pprof_scale_types(p, ratios, 2, NULL);
    assert_int_equal(pprof_sample_count(p), 3);
    assert_int_equal(sample_of(p, 0).values[0], 1);
    assert_int_equal(sample_of(p, 0).values[1], 1); /* 0.5 */
    assert_int_equal(sample_of(p, 2).values[1], 2); /* 1.5 */
    pprof_scale_types(p, (const double[]){1, 0.3}, 2, NULL);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_int_equal(sample_of(p, 0).values[1], 1);
    pprof_free(p);
}

static void
normalized_profile_adds_up_to_its_base(void **state)
{
    struct pprof_profile *p = make(1, 1, "x"), *base = make(7, 1, "x");

    assert_int_equal(pprof_normalize(p, base, NULL), CPPROF_OK);
    assert_int_equal(sample_of(p, 0).values[0], 1);
    assert_int_equal(sample_of(p, 0).values[1], 70);
    assert_int_equal(sample_of(p, 2).values[1], 210);
    pprof_free(p);
    pprof_free(base);
}

static void
label_is_set_on_every_sample(void **state)
{
    struct pprof_profile *p = make(1, 1, "x");
    size_t i;

    assert_int_equal(pprof_set_label(p, "k", "new", NULL), CPPROF_OK);
    for (i = 0; i < 3; i++) {
        struct pprof_sample s = sample_of(p, i);

        assert_int_equal(s.n_labels, i == 0 ? 2 : 1);
        assert_string_equal(text_of(p, s.labels[0].text), "new");
    }
    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    pprof_free(p);
}

/* A profile with one sample, of value 1, 2, ... for its types. */
static struct pprof_profile *
make_types(const char *const *types, size_t n)
{
    struct fixture f = {0};
    size_t mark, i;

    for (i = 0; i < n; i++)
        fixture_value_type(&f, 1, types[i], "count");
    mark = cpprof__put_begin(&f.bytes);
    for (i = 0; i < n; i++)
        cpprof__put_uint(&f.bytes, 2, i + 1);
    cpprof__put_end(&f.bytes, 2, mark);
    return fixture_must_read(&f);
}

/* Two columns of one name once took two columns out of a profile with one, and
 * wrote behind its values. */
static void
types_of_one_name_are_one_when_the_other_has_one(void **state)
{
    static const char *const two[] = {"cpu", "cpu"}, *const one[] = {"cpu"};
    struct pprof_profile *all[] = {make_types(two, 2), make_types(one, 1)};
    struct pprof_profile *p = merge(all, 2, NULL);

    assert_non_null(p);
    assert_int_equal(pprof_sample_type_count(p), 1);
    assert_int_equal(sample_of(p, 0).values[0], 2);
    pprof_free(p);
    all[0] = make_types(one, 1);
    all[1] = make_types(two, 2);
    p = merge(all, 2, NULL);
    assert_non_null(p);
    assert_int_equal(pprof_sample_type_count(p), 1);
    assert_int_equal(sample_of(p, 0).values[0], 2);
    pprof_free(p);
}

static void
types_of_one_name_stay_when_both_have_them(void **state)
{
    static const char *const two[] = {"cpu", "cpu"};
    struct pprof_profile *all[] = {make_types(two, 2), make_types(two, 2)};
    struct pprof_profile *p = merge(all, 2, NULL);

    assert_non_null(p);
    assert_int_equal(pprof_sample_type_count(p), 2);
    assert_int_equal(sample_of(p, 0).values[0], 2);
    assert_int_equal(sample_of(p, 0).values[1], 4);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_one_name_are_one_when_the_other_has_one),
        cmocka_unit_test(types_of_one_name_stay_when_both_have_them),
        cmocka_unit_test(equal_profiles_add_up),
        cmocka_unit_test(profile_minus_itself_is_empty),
        cmocka_unit_test(program_that_was_loaded_elsewhere_is_the_same),
        cmocka_unit_test(labels_and_their_units_keep_samples_apart),
        cmocka_unit_test(common_types_are_kept_in_the_first_ones_order),
        cmocka_unit_test(units_become_the_finer_ones),
        cmocka_unit_test(types_that_do_not_go_together_are_refused),
        cmocka_unit_test(period_types_that_differ_are_refused),
        cmocka_unit_test(nothing_to_merge_is_an_error),
        cmocka_unit_test(values_are_rounded_and_zeros_dropped),
        cmocka_unit_test(normalized_profile_adds_up_to_its_base),
        cmocka_unit_test(label_is_set_on_every_sample),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
