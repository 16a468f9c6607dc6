/* SPDX-License-Identifier: MIT */
/*
 * What a profile is made of: the properties of Go's TestTryAdd,
 * TestConvertCPUProfile, TestMapping, TestEmptyStack and TestConvertMemProfile
 * (runtime/pprof) with a symbolizer made up here.
 */
#include "builder_fixture.h"

/* Function names of a location's lines, "leaf middle bottom". */
static void
check_lines(const struct walk *w, size_t location, const char *want)
{
    const struct walk_location *l = &w->locations[location];
    char text[400] = "";
    size_t i;

    for (i = 0; i < l->n_lines; i++) {
        const struct walk_function *f = &w->functions[l->lines[i].function - 1];

        assert_in_range(l->lines[i].function, 1, w->n_functions);
        assert_int_equal(f->id, l->lines[i].function);
        if (i)
            strcat(text, " ");
        strcat(text, walk_string(w, f->name));
    }
    assert_string_equal(text, want);
}

static void
check_sample(const struct walk *w, size_t sample_index, uint64_t count,
             const uint64_t *ids)
{
    const struct walk_sample *s = &w->samples[sample_index];
    size_t i;

    assert_int_equal(s->n_values, 2);
    assert_int_equal(s->values[0], count);
    assert_int_equal(s->values[1], count * PERIOD_NS);
    for (i = 0; ids[i]; i++)
        assert_int_equal(s->locations[i], ids[i]);
    assert_int_equal(s->n_locations, i);
}

/* --- what is expected ----------------------------------------------------- */

static void
frames_of_files_alone_are_expected(void **state)
{
    struct fixture f;

    begin(&f);
    cpprof__builder_expect(
        f.builder, (struct cpprof__builder_frame){CPPROF__FRAME_LOST, f.a});
    cpprof__builder_expect(
        f.builder, (struct cpprof__builder_frame){0x9000, CPPROF__NO_MAPPING});
    cpprof__builder_expect(f.builder,
                           (struct cpprof__builder_frame){0x9000, 2});
    assert_int_equal(expected_pc, 0);
    cpprof__builder_expect(f.builder,
                           (struct cpprof__builder_frame){0x2010, f.b});
    assert_int_equal(expected_pc, 0x2010);
    assert_int_equal(expected_mapping, 1);
    walk_free(end(&f));
}

/* --- what is written ------------------------------------------------------ */

static void
profile_without_samples_has_types_period_and_times(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_without_mappings(&f, &cpu_head);
    w = end(&f);
    assert_int_equal(w->n_samples, 0);
    assert_int_equal(w->n_mappings, 0);
    assert_int_equal(w->n_types, 2);
    assert_string_equal(walk_string(w, w->types[0][0]), "samples");
    assert_string_equal(walk_string(w, w->types[0][1]), "count");
    assert_string_equal(walk_string(w, w->types[1][0]), "cpu");
    assert_string_equal(walk_string(w, w->types[1][1]), "nanoseconds");
    assert_string_equal(walk_string(w, w->period_type[0]), "cpu");
    assert_string_equal(walk_string(w, w->period_type[1]), "nanoseconds");
    assert_int_equal(w->scalar[12], PERIOD_NS);
    assert_true(w->scalar[9] == TIME_NS);
    assert_int_equal(w->n_seen[9], 1);
    assert_true(w->scalar[10] == 5000000000);
    assert_int_equal(w->n_seen[14], 0);
    walk_free(w);
}

static void
samples_refer_to_locations_with_the_address_as_given(void **state)
{
    struct fixture f;
    struct walk *w;
    size_t i;

    (void)state;
    begin(&f);
    sample(&f, 20, PCS(0x1f00, 0x1f01));
    sample(&f, 40, PCS(0x2f00, 0x2f01));
    w = end(&f);
    assert_int_equal(w->n_samples, 2);
    check_sample(w, 0, 20, PCS(1, 2));
    check_sample(w, 1, 40, PCS(3, 4));
    assert_int_equal(w->n_locations, 4);
    for (i = 0; i < 4; i++) {
        assert_int_equal(w->locations[i].id, i + 1);
        assert_int_equal(w->locations[i].mapping, i / 2 + 1);
        assert_int_equal(w->locations[i].address,
                         0x1f00 + i / 2 * 0x1000 + i % 2);
        assert_int_equal(w->locations[i].n_lines, 0);
    }
    walk_free(w);
}

static void
inlined_frames_are_lines_of_one_location_leaf_first(void **state)
{
    struct fixture f;
    struct walk *w;
    const struct walk_function *leaf;

    (void)state;
    begin(&f);
    sample(&f, 50, PCS(0x1010));
    w = end(&f);
    check_sample(w, 0, 50, PCS(1));
    assert_int_equal(w->n_locations, 1);
    check_lines(w, 0, "leaf middle bottom");
    leaf = &w->functions[w->locations[0].lines[0].function - 1];
    assert_string_equal(walk_string(w, leaf->system_name), "_Zleaf");
    assert_string_equal(walk_string(w, leaf->file), "a.h");
    assert_int_equal(leaf->start_line, 7);
    assert_int_equal(w->locations[0].lines[0].line, 9);
    assert_int_equal(w->locations[0].lines[0].column, 3);
    assert_int_equal(w->locations[0].lines[2].line, 29);
    walk_free(w);
}

static void
recursion_is_never_folded(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 30, PCS(0x1010, 0x1020, 0x1020, 0x1020, 0x1f00));
    sample(&f, 40, PCS(0x1010, 0x1010));
    w = end(&f);
    check_sample(w, 0, 30, PCS(1, 2, 2, 2, 3));
    check_sample(w, 1, 40, PCS(1, 1));
    assert_int_equal(w->n_locations, 3);
    walk_free(w);
}

static void
inlined_recursion_shares_its_functions(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 10, PCS(0x1020, 0x1030, 0x1040));
    w = end(&f);
    check_sample(w, 0, 10, PCS(1, 2, 3));
    check_lines(w, 0, "bottom");
    check_lines(w, 1, "middle top bottom");
    check_lines(w, 2, "middle top main");
    assert_int_equal(w->n_functions, 4);
    walk_free(w);
}

static void
truncated_and_whole_stacks_share_their_locations(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 70, PCS(0x1010));
    sample(&f, 80, PCS(0x1020, 0x1010));
    sample(&f, 90, PCS(0x1010, 0x1020));
    w = end(&f);
    check_sample(w, 0, 70, PCS(1));
    check_sample(w, 1, 80, PCS(2, 1));
    check_sample(w, 2, 90, PCS(1, 2));
    assert_int_equal(f.symbolizer.n_resolved, 2);
    walk_free(w);
}

static void
same_address_in_two_mappings_is_two_locations(void **state)
{
    struct fixture f;
    struct walk *w;
    struct cpprof__builder_frame stack[] = {{0x1020, 0}, {0x1020, 1}};

    (void)state;
    begin(&f);
    cpprof__builder_add_sample(f.builder, (int64_t[]){1, 1}, stack, 2, NULL, 0);
    w = end(&f);
    assert_int_equal(w->n_locations, 2);
    assert_int_equal(w->locations[1].mapping, 2);
    check_lines(w, 0, "bottom");
    check_lines(w, 1, "");
    walk_free(w);
}

static void
own_frames_are_functions_without_a_mapping(void **state)
{
    static const struct {
        uint64_t pc;
        const char *name;
    } own[] = {
        {CPPROF__FRAME_LOST, "[lost samples]"},
        {CPPROF__FRAME_TRUNCATED, "[truncated]"},
        {CPPROF__FRAME_BROKEN, "[unwind failed]"},
        {CPPROF__FRAME_BLOCKED, "[signal blocked]"},
        {CPPROF__FRAME_EXITED, "[short-lived thread]"},
        {CPPROF__FRAME_END - 1, "[unwind failed]"},
    };
    struct fixture f;
    struct walk *w;
    size_t i;

    (void)state;
    begin(&f);
    for (i = 0; i < sizeof own / sizeof *own; i++) {
        /* Whatever mapping comes with it. */
        struct cpprof__builder_frame frame = {own[i].pc, f.a};

        cpprof__builder_add_sample(f.builder, (int64_t[]){4242, 1}, &frame, 1,
                                   NULL, 0);
    }
    w = end(&f);
    assert_int_equal(w->samples[0].values[0], 4242);
    assert_int_equal(w->n_locations, sizeof own / sizeof *own);
    for (i = 0; i < w->n_locations; i++) {
        assert_int_equal(w->locations[i].mapping, 0);
        assert_int_equal(w->locations[i].address, 0);
        check_lines(w, i, own[i].name);
    }
    assert_int_equal(f.symbolizer.n_resolved, 0);
    walk_free(w);
}

static void
empty_stack_gets_a_frame_of_our_own(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    cpprof__builder_add_sample(f.builder, (int64_t[]){1, PERIOD_NS}, NULL, 0,
                               NULL, 0);
    w = end(&f);
    check_sample(w, 0, 1, PCS(1));
    check_lines(w, 0, "[unwind failed]");
    walk_free(w);
}

static void
code_outside_all_mappings_is_resolved_as_such(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x9000, 0x9999));
    w = end(&f);
    assert_int_equal(w->locations[0].mapping, 0);
    assert_int_equal(w->locations[0].address, 0x9000);
    check_lines(w, 0, "jit");
    check_lines(w, 1, "");
    walk_free(w);
}

static void
sample_code(struct fixture *f, uint64_t n_bytes)
{
    const struct cpprof__builder_frame frame = {0x9100,
                                                cpprof__made_code(n_bytes)};
    const int64_t values[2] = {1, PERIOD_NS};

    cpprof__builder_add_sample(f->builder, values, &frame, 1, NULL, 0);
}

static void
code_that_was_another_function_is_another_location(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample_code(&f, 120);
    sample_code(&f, 300);
    sample_code(&f, 150);
    sample_code(&f, 250);
    w = end(&f);
    assert_int_equal(w->n_locations, 2);
    check_lines(w, 0, "early");
    check_lines(w, 1, "late");
    assert_int_equal(w->locations[0].mapping, 0);
    assert_int_equal(w->locations[1].address, 0x9100);
    check_sample(w, 0, 1, PCS(1));
    check_sample(w, 1, 1, PCS(2));
    check_sample(w, 2, 1, PCS(1));
    check_sample(w, 3, 1, PCS(2));
    walk_free(w);
}

/* --- mappings --------------------------------------------------------------*/

static void
check_has(const struct walk *w, size_t mapping, const char *want)
{
    const uint64_t *has = w->mappings[mapping].has;
    char text[5];
    size_t i;

    for (i = 0; i < 4; i++)
        text[i] = has[i] ? "FNLI"[i] : '-';
    text[4] = 0;
    assert_string_equal(text, want);
}

static void
mappings_are_written_in_order_used_or_not(void **state)
{
    struct fixture f;
    struct walk *w;
    uint32_t again, other;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x2010));
    again = cpprof__builder_add_mapping(
        f.builder, &(struct cpprof__symbolizer_mapping){0x1000, 0x2000, 0x100,
                                                        "/bin/a b", "abcd", 0});
    other = cpprof__builder_add_mapping(
        f.builder, &(struct cpprof__symbolizer_mapping){0x1000, 0x2000, 0x100,
                                                        "/bin/a b", "abce", 0});
    assert_int_equal(again, f.a);
    assert_int_equal(other, 2);
    w = end(&f);
    assert_int_equal(w->n_mappings, 3);
    assert_int_equal(w->mappings[0].id, 1);
    assert_int_equal(w->mappings[0].start, 0x1000);
    assert_int_equal(w->mappings[0].limit, 0x2000);
    assert_int_equal(w->mappings[0].offset, 0x100);
    assert_string_equal(walk_string(w, w->mappings[0].path), "/bin/a b");
    assert_string_equal(walk_string(w, w->mappings[0].build_id), "abcd");
    assert_int_equal(w->mappings[1].build_id, 0);
    assert_string_equal(walk_string(w, w->mappings[2].build_id), "abce");
    walk_free(w);
}

static void
mapping_of_known_locations_has_all_bits(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x1010, 0x1020, 0x2030));
    w = end(&f);
    check_has(w, 0, "FNLI");
    check_has(w, 1, "FNLI");
    walk_free(w);
}

static void
stand_in_takes_all_bits_and_names_its_location(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x2030, 0x2040));
    w = end(&f);
    check_has(w, 1, "----");
    check_lines(w, 1, "[b+0x40]");
    assert_int_equal(w->locations[1].address, 0x2040);
    walk_free(w);
}

static void
mapping_without_locations_has_no_bits(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x1010));
    w = end(&f);
    check_has(w, 1, "----");
    walk_free(w);
}

static void
one_unknown_location_takes_all_bits(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x1010, 0x1f00, 0x1020));
    w = end(&f);
    check_has(w, 0, "----");
    check_lines(w, 0, "leaf middle bottom");
    check_lines(w, 1, "");
    walk_free(w);
}

static void
bits_hold_only_for_what_every_location_has(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x2030, 0x2020));
    w = end(&f);
    check_has(w, 1, "FN-I");
    walk_free(w);
    begin(&f);
    sample(&f, 1, PCS(0x2010, 0x2030));
    w = end(&f);
    check_has(w, 1, "F--I");
    walk_free(w);
    begin(&f);
    f.symbolizer.no_inlines = true;
    sample(&f, 1, PCS(0x1010, 0x2030));
    w = end(&f);
    check_has(w, 0, "FNL-");
    check_has(w, 1, "FNLI");
    walk_free(w);
}

static void
without_a_symbolizer_there_are_addresses_only(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    memset(&f, 0, sizeof f);
    assert_int_equal(cpprof__builder_make(&cpu_head, sink_writer(&f.sink), NULL,
                                          NULL, &f.builder, NULL),
                     CPPROF_OK);
    f.a = cpprof__builder_add_mapping(
        f.builder,
        &(struct cpprof__symbolizer_mapping){0x1000, 0x2000, 0, "/a", "01", 0});
    sample(&f, 1, PCS(0x1010));
    w = end(&f);
    assert_int_equal(w->n_functions, 0);
    check_has(w, 0, "----");
    walk_free(w);
}

static void
mapping_the_symbolizer_has_no_room_for_stays_unresolved(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_without_mappings(&f, &cpu_head);
    f.symbolizer.max_mappings = 0;
    f.a = cpprof__builder_add_mapping(
        f.builder,
        &(struct cpprof__symbolizer_mapping){0x1000, 0x2000, 0, "/a", "01", 0});
    sample(&f, 1, PCS(0x1010));
    w = end(&f);
    assert_int_equal(w->n_mappings, 1);
    assert_int_equal(f.symbolizer.n_resolved, 0);
    check_has(w, 0, "----");
    walk_free(w);
}

/* --- labels, other kinds, order ------------------------------------------- */

static void
labels_are_texts_or_numbers_with_units(void **state)
{
    struct cpprof__builder_label labels[] = {
        {.key = "endpoint", .str = "/a b"},
        {.key = "bytes", .num = 512, .num_unit = "bytes"},
        {.key = "delta", .num = -3},
    };
    struct cpprof__builder_frame frame = {0x1010, 0};
    struct fixture f;
    struct walk *w;
    const struct walk_label *l;

    (void)state;
    begin(&f);
    cpprof__builder_add_sample(f.builder, (int64_t[]){1, 2}, &frame, 1, labels,
                               3);
    sample(&f, 1, PCS(0x1010));
    w = end(&f);
    l = w->samples[0].labels;
    assert_int_equal(w->samples[0].n_labels, 3);
    assert_string_equal(walk_string(w, l[0].key), "endpoint");
    assert_string_equal(walk_string(w, l[0].str), "/a b");
    assert_int_equal(l[0].num, 0);
    assert_string_equal(walk_string(w, l[1].key), "bytes");
    assert_int_equal(l[1].str, 0);
    assert_int_equal(l[1].num, 512);
    assert_string_equal(walk_string(w, l[1].unit), "bytes");
    assert_true((int64_t)l[2].num == -3);
    assert_int_equal(w->samples[1].n_labels, 0);
    walk_free(w);
}

/* A strict reader refuses a whole file for one string. */
static void
texts_that_are_no_utf8_have_question_marks_and_stay_one(void **state)
{
    static const struct cpprof__symbolizer_mapping mapping = {
        .start = 0x7000,
        .limit = 0x8000,
        .path = "/odd/\xff\xfe",
        .build_id = ""};
    const struct cpprof__builder_label labels[] = {
        {.key = "k\xff", .str = "\xc3\xa9\x80"}};
    struct cpprof__builder_frame frame = {0x1010, 0};
    struct fixture f;
    struct walk *w;
    const struct walk_label *l;

    (void)state;
    begin(&f);
    cpprof__builder_add_mapping(f.builder, &mapping);
    cpprof__builder_add_sample(f.builder, (int64_t[]){1, 2}, &frame, 1, labels,
                               1);
    cpprof__builder_add_sample(f.builder, (int64_t[]){1, 2}, &frame, 1, labels,
                               1);
    w = end(&f);
    assert_string_equal(walk_string(w, w->mappings[w->n_mappings - 1].path),
                        "/odd/??");
    l = w->samples[0].labels;
    assert_string_equal(walk_string(w, l->key), "k?");
    assert_string_equal(walk_string(w, l->str), "\xc3\xa9?");
    assert_int_equal(w->samples[1].labels->str, l->str);
    walk_free(w);
}

static void
heap_profile_has_four_values_and_a_default_type(void **state)
{
    static const struct cpprof__value_type types[] = {
        {"alloc_objects", "count"},
        {"alloc_space", "bytes"},
        {"inuse_objects", "count"},
        {"inuse_space", "bytes"}};
    static const struct cpprof__profile_head head = {
        .sample_types = types,
        .n_sample_types = 4,
        .period_type = {"space", "bytes"},
        .period = 524288,
        .time_ns = TIME_NS,
        .default_sample_type = "alloc_space",
        .drop_frames = "malloc",
        .keep_frames = "my_malloc",
    };
    struct cpprof__builder_label label = {
        .key = "bytes", .num = 1024, .num_unit = "bytes"};
    struct cpprof__builder_frame frame = {0x1010, 0};
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_without_mappings(&f, &head);
    cpprof__builder_add_sample(f.builder,
                               (int64_t[]){1050, 537600, -1, INT64_MIN}, &frame,
                               1, &label, 1);
    w = end(&f);
    assert_int_equal(w->samples[0].n_values, 4);
    assert_int_equal(w->samples[0].values[0], 1050);
    assert_true((int64_t)w->samples[0].values[2] == -1);
    assert_true((int64_t)w->samples[0].values[3] == INT64_MIN);
    assert_string_equal(walk_string(w, w->scalar[14]), "alloc_space");
    assert_string_equal(walk_string(w, w->scalar[7]), "malloc");
    assert_string_equal(walk_string(w, w->scalar[8]), "my_malloc");
    walk_free(w);
}

static void
head_comes_first_and_strings_come_last(void **state)
{
    struct fixture f;
    struct walk *w;
    size_t i, k;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x1010));
    cpprof__builder_add_comment(f.builder, "engine: timer");
    cpprof__builder_add_comment(f.builder, "engine: timer");
    w = end(&f);
    assert_int_equal(w->first, 1);
    assert_int_equal(w->last, 6);
    assert_int_equal(w->n_comments, 2);
    assert_string_equal(walk_string(w, w->comments[1]), "engine: timer");
    for (i = 0; i < w->n_strings; i++)
        for (k = i + 1; k < w->n_strings; k++)
            assert_false(w->strings[i].n == w->strings[k].n &&
                         memcmp(w->strings[i].text, w->strings[k].text,
                                w->strings[i].n) == 0);
    walk_free(w);
}

static void
functions_differ_by_name_file_and_line(void **state)
{
    /* The same function by name, once with a line, once without a file. */
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f);
    sample(&f, 1, PCS(0x1020, 0x1010, 0x1030, 0x1040));
    w = end(&f);
    /* bottom, leaf, middle, top, main: one entry each */
    assert_int_equal(w->n_functions, 5);
    walk_free(w);
}

static void
stack_of_a_thousand_frames_is_kept(void **state)
{
    static struct cpprof__builder_frame stack[1024];
    struct fixture f;
    struct walk *w;
    size_t i;

    (void)state;
    begin(&f);
    for (i = 0; i < 1024; i++)
        stack[i] = (struct cpprof__builder_frame){0x1000 + i % 40, 0};
    cpprof__builder_add_sample(f.builder, (int64_t[]){1, 2}, stack, 1024, NULL,
                               0);
    w = end(&f);
    assert_int_equal(w->samples[0].n_locations, 1024);
    assert_int_equal(w->samples[0].locations[1023], 1023 % 40 + 1);
    walk_free(w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_files_alone_are_expected),
        cmocka_unit_test(profile_without_samples_has_types_period_and_times),
        cmocka_unit_test(samples_refer_to_locations_with_the_address_as_given),
        cmocka_unit_test(inlined_frames_are_lines_of_one_location_leaf_first),
        cmocka_unit_test(recursion_is_never_folded),
        cmocka_unit_test(inlined_recursion_shares_its_functions),
        cmocka_unit_test(truncated_and_whole_stacks_share_their_locations),
        cmocka_unit_test(same_address_in_two_mappings_is_two_locations),
        cmocka_unit_test(own_frames_are_functions_without_a_mapping),
        cmocka_unit_test(empty_stack_gets_a_frame_of_our_own),
        cmocka_unit_test(code_outside_all_mappings_is_resolved_as_such),
        cmocka_unit_test(code_that_was_another_function_is_another_location),
        cmocka_unit_test(mappings_are_written_in_order_used_or_not),
        cmocka_unit_test(mapping_of_known_locations_has_all_bits),
        cmocka_unit_test(stand_in_takes_all_bits_and_names_its_location),
        cmocka_unit_test(mapping_without_locations_has_no_bits),
        cmocka_unit_test(one_unknown_location_takes_all_bits),
        cmocka_unit_test(bits_hold_only_for_what_every_location_has),
        cmocka_unit_test(without_a_symbolizer_there_are_addresses_only),
        cmocka_unit_test(
            mapping_the_symbolizer_has_no_room_for_stays_unresolved),
        cmocka_unit_test(labels_are_texts_or_numbers_with_units),
        cmocka_unit_test(
            texts_that_are_no_utf8_have_question_marks_and_stay_one),
        cmocka_unit_test(heap_profile_has_four_values_and_a_default_type),
        cmocka_unit_test(head_comes_first_and_strings_come_last),
        cmocka_unit_test(functions_differ_by_name_file_and_line),
        cmocka_unit_test(stack_of_a_thousand_frames_is_kept),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
