/* SPDX-License-Identifier: MIT */
/*
 * Profiles that are made record by record, and edited: what goes in comes out,
 * what makes no sense is refused, and whichever allocation fails leaves a
 * profile that is whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"
#include "views.h"
#include "write_fixture.h"
#include <cpprof/pprof.h>

#define NEW(type, ...)                                                         \
    (&(struct pprof_new_##type){.size = sizeof(struct pprof_new_##type),       \
                                __VA_ARGS__})

static struct cpprof_error error;

#define OK(call) assert_int_equal(call, CPPROF_OK)

static struct pprof_profile *
make(void)
{
    struct pprof_profile *p;

    OK(pprof_new(&p, &error));
    return p;
}

/* ---- a whole profile --------------------------------------------------- */

static enum cpprof_status
add_head(struct pprof_profile *p)
{
    enum cpprof_status status =
        pprof_add_sample_type(p, "samples", "count", &error);

    if (status == CPPROF_OK)
        status = pprof_add_sample_type(p, "cpu", "nanoseconds", &error);
    if (status == CPPROF_OK)
        status = pprof_set_period(p, "cpu", "nanoseconds", 10000000, &error);
    if (status == CPPROF_OK)
        status = pprof_set_default_sample_type(p, "cpu", &error);
    if (status == CPPROF_OK)
        status = pprof_set_doc_url(p, "https://example.org/doc", &error);
    if (status == CPPROF_OK)
        status = pprof_set_frames(p, "drop.*", "keep.*", &error);
    if (status == CPPROF_OK)
        status = pprof_add_comment(p, "made by hand", &error);
    pprof_set_time(p, 1700000000000000000, 5000000000);
    return status;
}

static enum cpprof_status
add_tables(struct pprof_profile *p)
{
    struct pprof_line lines[2] = {{.line = 7, .column = 3}, {.line = 20}};
    uint32_t mapping, unused;
    enum cpprof_status status = pprof_add_mapping(
        p,
        NEW(mapping, .start = 0x1000, .limit = 0x5000, .offset = 0x200,
            .file = "/bin/a", .build_id = "abcd", .flags = PPROF_HAS_FUNCTIONS),
        &mapping, &error);

    if (status == CPPROF_OK)
        status = pprof_add_function(p,
                                    NEW(function, .name = "leaf",
                                        .system_name = "_Zleaf", .file = "a.c",
                                        .start_line = 5),
                                    &lines[0].function, &error);
    if (status == CPPROF_OK)
        status = pprof_add_function(p, NEW(function, .name = "main"),
                                    &lines[1].function, &error);
    if (status == CPPROF_OK)
        status = pprof_add_location(p,
                                    NEW(location, .address = 0x1010,
                                        .mapping = mapping, .lines = lines,
                                        .n_lines = 2),
                                    &unused, &error);
    if (status == CPPROF_OK)
        status = pprof_add_location(p,
                                    NEW(location, .address = 9,
                                        .mapping = PPROF_NONE,
                                        .flags = PPROF_FOLDED),
                                    NULL, &error);
    return status;
}

static enum cpprof_status
add_samples(struct pprof_profile *p)
{
    static const uint32_t stack[] = {0, 1};
    static const int64_t values[] = {3, 30000000};
    static const struct pprof_new_label labels[] = {
        {"route", "/cart", 0, NULL},
        {"bytes", NULL, 512, "bytes"},
        {"attempt", NULL, -1, NULL},
    };
    enum cpprof_status status =
        pprof_add_sample(p,
                         NEW(sample, .locations = stack, .n_locations = 2,
                             .values = values, .labels = labels, .n_labels = 3),
                         NULL, &error);

    return status != CPPROF_OK
               ? status
               : pprof_add_sample(p, NEW(sample, .values = values), NULL,
                                  &error);
}

static enum cpprof_status
build(struct pprof_profile *p)
{
    enum cpprof_status status = add_head(p);

    if (status == CPPROF_OK)
        status = add_tables(p);
    return status == CPPROF_OK ? add_samples(p) : status;
}

static void
profile_that_was_built_is_written_and_read(void **state)
{
    struct pprof_profile *p = make(), *again;
    struct written bytes, text, text_again;
    const struct pprof_label *labels;

    (void)state;
    OK(build(p));
    OK(pprof_check(p, &error));
    bytes = must_write(p, PPROF_FORMAT_PLAIN);
    text = must_write(p, PPROF_FORMAT_TEXT);
    again = read_back(&bytes);
    text_again = must_write(again, PPROF_FORMAT_TEXT);
    assert_written(&text, text_again.bytes.data, text_again.bytes.n);
    assert_int_equal(pprof_sample_count(again), 2);
    assert_int_equal(pprof_line_count(again), 2);
    assert_int_equal(info_of(again).time_ns, 1700000000000000000);
    assert_int_equal(info_of(again).duration_ns, 5000000000);
    assert_int_equal(pprof_functions(again)[1].system_name,
                     pprof_functions(again)[1].name);
    assert_int_equal(pprof_locations(again)[1].flags, PPROF_FOLDED);
    assert_int_equal(pprof_locations(again)[1].mapping, PPROF_NONE);
    assert_int_equal(sample_of(again, 0).n_labels, 3);
    labels = sample_of(again, 0).labels;
    assert_string_equal(pprof_text(again, labels[0].text, NULL), "/cart");
    assert_int_equal(labels[1].num, -1); /* numbers are sorted by key */
    assert_string_equal(pprof_text(again, labels[2].unit, NULL), "bytes");
    assert_int_equal(sample_of(again, 1).n_locations, 0);
    written_free(&bytes);
    written_free(&text);
    written_free(&text_again);
    pprof_free(p);
    pprof_free(again);
}

/* ---- editing ----------------------------------------------------------- */

static void
sample_types_come_and_go_with_their_values(void **state)
{
    struct pprof_profile *p = make();

    (void)state;
    OK(build(p));
    OK(pprof_add_sample_type(p, "allocs", "count", &error));
    OK(pprof_check(p, &error));
    assert_int_equal(sample_of(p, 0).values[1], 30000000);
    assert_int_equal(sample_of(p, 1).values[0], 3);
    assert_int_equal(sample_of(p, 1).values[1], 30000000);
    assert_int_equal(sample_of(p, 1).values[2], 0);
    OK(pprof_set_sample_type(p, 2, "frees", "count", &error));
    assert_string_equal(pprof_text(p, pprof_sample_types(p)[2].type, NULL),
                        "frees");
    OK(pprof_remove_sample_type(p, 0, &error));
    OK(pprof_check(p, &error));
    assert_int_equal(pprof_sample_type_count(p), 2);
    assert_int_equal(sample_of(p, 1).values[0], 30000000);
    assert_int_equal(sample_of(p, 1).values[1], 0);
    OK(pprof_remove_sample_type(p, 1, &error));
    assert_int_equal(pprof_remove_sample_type(p, 0, &error), CPPROF_INVALID);
    assert_string_equal(error.text, "samples need a sample type");
    OK(pprof_check(p, &error));
    pprof_free(p);
}

static bool
is_odd(void *ctx, size_t index)
{
    ++*(size_t *)ctx;
    return index % 2;
}

static void
records_are_replaced_in_place(void **state)
{
    static const int64_t values[] = {5, 6};
    static const uint32_t leaf[] = {1};
    struct pprof_profile *p = make();
    size_t n_asked = 0;
    uint64_t id;

    (void)state;
    OK(build(p));
    id = pprof_functions(p)[0].id;
    OK(pprof_set_function(p, 0, NEW(function, .name = "other"), &error));
    assert_int_equal(pprof_functions(p)[0].id, id);
    assert_string_equal(pprof_text(p, pprof_functions(p)[0].name, NULL),
                        "other");
    OK(pprof_set_mapping(p, 0, NEW(mapping, .file = "/bin/b"), &error));
    assert_string_equal(pprof_text(p, pprof_mappings(p)[0].file, NULL),
                        "/bin/b");
    OK(pprof_set_location(
        p, 0,
        NEW(location, .mapping = 0, .n_lines = 1,
            .lines = &(struct pprof_line){.line = 1, .function = 1}),
        &error));
    assert_int_equal(pprof_locations(p)[0].n_lines, 1);
    OK(pprof_set_sample(
        p, 1,
        NEW(sample, .locations = leaf, .n_locations = 1, .values = values),
        &error));
    OK(pprof_check(p, &error));
    assert_int_equal(sample_of(p, 1).values[1], 6);
    assert_int_equal(sample_of(p, 1).locations[0], 1);
    assert_int_equal(sample_of(p, 0).values[1], 30000000);
    pprof_keep_samples(p, is_odd, &n_asked);
    assert_int_equal(n_asked, 2);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_int_equal(sample_of(p, 0).values[0], 5);
    pprof_remove_comments(p);
    assert_int_equal(pprof_comment_count(p), 0);
    OK(pprof_check(p, &error));
    OK(pprof_compact(p, &error));
    OK(pprof_add_function(p, NEW(function, .name = "after"), NULL, &error));
    OK(pprof_check(p, &error));
    pprof_free(p);
}

/* Ids are any numbers but 0; a new one is none of them. */
static void
ids_of_a_file_are_not_given_again(void **state)
{
    static const uint64_t ids[] = {9, 2, UINT64_MAX, 3};
    struct pprof_profile *p;
    struct fixture f = {0};
    size_t i;

    (void)state;
    fixture_cpu(&f);
    for (i = 0; i < sizeof ids / sizeof *ids; i++)
        fixture_mapping(&f, ids[i], 0x10000 * (i + 1), "/bin/a", "ab");
    p = fixture_must_read(&f);
    for (i = 0; i < 12; i++)
        OK(pprof_add_mapping(p, NEW(mapping, .start = i), NULL, &error));
    OK(pprof_check(p, &error));
    assert_int_equal(pprof_mappings(p)[4].id, 10);
    pprof_free(p);
}

/* ---- what makes no sense ----------------------------------------------- */

static void
refused(enum cpprof_status status, const char *why)
{
    assert_int_equal(status, CPPROF_INVALID);
    assert_string_equal(error.text, why);
}

static void
indices_outside_their_tables_are_refused(void **state)
{
    static const int64_t values[] = {1, 2};
    static const uint32_t far[] = {0, 2};
    struct pprof_line line = {.function = 2};
    struct pprof_profile *p = make();

    (void)state;
    refused(pprof_add_sample(p, NEW(sample, .values = values), NULL, &error),
            "a sample needs a sample type");
    OK(build(p));
    refused(pprof_add_sample(p,
                             NEW(sample, .values = values, .locations = far,
                                 .n_locations = 2),
                             NULL, &error),
            "location 2 of 2");
    refused(pprof_add_sample(p, NEW(sample, .n_locations = 0), NULL, &error),
            "a sample needs values");
    refused(pprof_set_sample(p, 2, NEW(sample, .values = values), &error),
            "sample 2 of 2");
    refused(pprof_add_location(p, NEW(location, .mapping = 1), NULL, &error),
            "mapping 1 of 1");
    refused(pprof_add_location(p,
                               NEW(location, .mapping = PPROF_NONE,
                                   .lines = &line, .n_lines = 1),
                               NULL, &error),
            "function 2 of 2");
    refused(pprof_set_location(p, 2, NEW(location, .mapping = 0), &error),
            "location 2 of 2");
    refused(pprof_set_function(p, 9, NEW(function, .name = "f"), &error),
            "function 9 of 2");
    refused(pprof_set_mapping(p, 1, NEW(mapping, .start = 1), &error),
            "mapping 1 of 1");
    refused(pprof_set_sample_type(p, 2, "a", "b", &error),
            "sample type 2 of 2");
    refused(pprof_remove_sample_type(p, 2, &error), "sample type 2 of 2");
    assert_int_equal(pprof_sample_count(p), 2);
    assert_int_equal(pprof_location_count(p), 2);
    OK(pprof_check(p, &error));
    pprof_free(p);
}

static void
flags_and_sizes_and_keys_are_looked_at(void **state)
{
    static const int64_t values[] = {1, 2};
    static const struct pprof_new_label no_key = {.text = "x"};
    struct pprof_profile *p = make();

    (void)state;
    OK(build(p));
    refused(pprof_add_mapping(p, NEW(mapping, .flags = 64), NULL, &error),
            "unknown flags 0x40");
    refused(pprof_add_location(p,
                               NEW(location, .mapping = PPROF_NONE, .flags = 2),
                               NULL, &error),
            "unknown flags 0x2");
    refused(pprof_add_sample(
                p,
                NEW(sample, .values = values, .labels = &no_key, .n_labels = 1),
                NULL, &error),
            "a label needs a key");
    assert_int_equal(
        pprof_add_function(p, &(struct pprof_new_function){.name = "no size"},
                           NULL, &error),
        CPPROF_INVALID);
    assert_int_equal(pprof_function_count(p), 2);
    OK(pprof_check(p, &error));
    pprof_free(p);
}

/* ---- views ------------------------------------------------------------- */

/* Programs of other headers have structs of other sizes. */
static void
view_fills_what_the_struct_has_room_for(void **state)
{
    struct {
        struct pprof_info known;
        uint64_t later[2];
    } longer;
    struct pprof_info shorter;
    struct pprof_profile *p = make();

    (void)state;
    OK(build(p));
    memset(&shorter, 0xff, sizeof shorter);
    shorter.size = offsetof(struct pprof_info, duration_ns);
    pprof_get_info(p, &shorter);
    assert_int_equal(shorter.time_ns, 1700000000000000000);
    assert_int_equal(shorter.duration_ns, -1);
    memset(&longer, 0xff, sizeof longer);
    longer.known.size = sizeof longer;
    pprof_get_info(p, &longer.known);
    assert_int_equal(longer.known.size, sizeof longer);
    assert_int_equal(longer.known.duration_ns, 5000000000);
    assert_int_equal(longer.later[0], 0);
    assert_int_equal(longer.later[1], 0);
    pprof_free(p);
}

/* ---- memory ------------------------------------------------------------ */

static void
allocation_that_fails_leaves_a_whole_profile(void **state)
{
    struct pprof_profile *p = NULL;
    enum cpprof_status status = CPPROF_NOMEM;
    long n;

    (void)state;
    for (n = 0; status != CPPROF_OK; n++) {
        assert_true(n < 1000);
        oom_watch();
        oom.countdown = n;
        p = NULL;
        status = pprof_new(&p, &error);
        if (status == CPPROF_OK)
            status = build(p);
        oom.countdown = -1;
        if (status != CPPROF_OK)
            assert_int_equal(status, CPPROF_NOMEM);
        if (p)
            OK(pprof_check(p, &error));
        pprof_free(p);
        assert_int_equal(oom.n_live, 0);
    }
    assert_true(n > 10);
}

/* A location without a mapping has PPROF_NONE; that is an argument, too. */
static void
what_is_not_there_is_nothing(void **state)
{
    const size_t far[] = {2, PPROF_NONE, SIZE_MAX};
    struct pprof_profile *p = make();
    size_t i, n;

    (void)state;
    OK(build(p));
    for (i = 0; i < sizeof far / sizeof *far; i++) {
        assert_int_equal(sample_of(p, far[i]).n_locations, 0);
        assert_int_equal(sample_of(p, far[i]).n_labels, 0);
        assert_null(sample_of(p, far[i]).values);
        assert_false(pprof_has_label(p, far[i], "a", "b"));
        assert_false(pprof_is_diff_base(p, far[i]));
        assert_true(pprof_is_unsymbolizable(p, far[i]));
    }
    assert_string_equal(pprof_text(p, PPROF_NONE, &n), "");
    assert_int_equal(n, 0);
    assert_int_equal(sample_of(NULL, 0).n_locations, 0);
    pprof_free(p);
}

static void
array_that_is_null_has_no_elements(void **state)
{
    static const int64_t values[] = {1, 2};
    struct pprof_profile *p = make();

    (void)state;
    OK(build(p));
    refused(pprof_add_location(
                p, NEW(location, .mapping = PPROF_NONE, .n_lines = 1), NULL,
                &error),
            "1 lines are NULL");
    refused(pprof_add_sample(p, NEW(sample, .values = values, .n_locations = 3),
                             NULL, &error),
            "3 locations are NULL");
    refused(pprof_set_sample(p, 0, NEW(sample, .values = values, .n_labels = 2),
                             &error),
            "2 labels are NULL");
    OK(pprof_check(p, &error));
    pprof_free(p);
}

/* A function with a new name, and the file that it has; and so on: room for
 * what is new must not take away what is given. Often, so that everything has
 * to grow. */
static void
what_is_given_may_be_the_profile_s_own(void **state)
{
    struct pprof_profile *p = make();
    char name[64];
    unsigned i;

    (void)state;
    OK(build(p));
    for (i = 0; i < 2000; i++) {
        const char *file = pprof_text(p, pprof_functions(p)[0].file, NULL);
        const char *build_id = pprof_text(p, pprof_mappings(p)[0].build_id, 0);
        struct pprof_location location = pprof_locations(p)[0];
        struct pprof_sample sample = sample_of(p, 0);
        size_t index;

        snprintf(name, sizeof name, "a name that was never there, %u", i);
        OK(pprof_set_function(p, 0, NEW(function, .name = name, .file = file),
                              &error));
        assert_string_equal(pprof_text(p, pprof_functions(p)[0].file, NULL),
                            "a.c");
        snprintf(name, sizeof name, "/a/file that was never there, %u", i);
        OK(pprof_set_mapping(
            p, 0, NEW(mapping, .file = name, .build_id = build_id), &error));
        assert_string_equal(pprof_text(p, pprof_mappings(p)[0].build_id, NULL),
                            "abcd");
        OK(pprof_set_location(p, 0,
                              NEW(location, .address = i,
                                  .mapping = location.mapping,
                                  .lines = pprof_lines(p) + location.first_line,
                                  .n_lines = location.n_lines),
                              &error));
        OK(pprof_add_sample(p,
                            NEW(sample, .locations = sample.locations,
                                .n_locations = sample.n_locations,
                                .values = sample.values),
                            &index, &error));
        sample = sample_of(p, index);
        assert_int_equal(sample.n_locations, sample_of(p, 0).n_locations);
        assert_memory_equal(sample.locations, sample_of(p, 0).locations,
                            sample.n_locations * sizeof *sample.locations);
        assert_memory_equal(sample.values, sample_of(p, 0).values,
                            2 * sizeof *sample.values);
        OK(pprof_set_sample(p, index,
                            NEW(sample, .locations = sample.locations,
                                .n_locations = sample.n_locations,
                                .values = sample.values),
                            &error));
    }
    assert_int_equal(pprof_lines(p)[pprof_locations(p)[0].first_line].line, 7);
    OK(pprof_check(p, &error));
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_that_was_built_is_written_and_read),
        cmocka_unit_test(sample_types_come_and_go_with_their_values),
        cmocka_unit_test(records_are_replaced_in_place),
        cmocka_unit_test(ids_of_a_file_are_not_given_again),
        cmocka_unit_test(indices_outside_their_tables_are_refused),
        cmocka_unit_test(flags_and_sizes_and_keys_are_looked_at),
        cmocka_unit_test(what_is_not_there_is_nothing),
        cmocka_unit_test(array_that_is_null_has_no_elements),
        cmocka_unit_test(what_is_given_may_be_the_profile_s_own),
        cmocka_unit_test(view_fills_what_the_struct_has_room_for),
        cmocka_unit_test(allocation_that_fails_leaves_a_whole_profile),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
