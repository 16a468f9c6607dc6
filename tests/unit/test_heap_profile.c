/* SPDX-License-Identifier: MIT */
/* A heap's tables as a pprof file: what the reader finds in it. */
#include "heap_fixture.h"

#include "collect/signal/tables/label_numbers.h"
#include "views.h"

#include <regex.h>

static void
assert_values(const struct pprof_profile *p, size_t sample, int64_t a,
              int64_t b, int64_t c, int64_t d)
{
    struct pprof_sample s = sample_of(p, sample);

    assert_int_equal(s.values[0], a);
    assert_int_equal(s.values[1], b);
    assert_int_equal(s.values[2], c);
    assert_int_equal(s.values[3], d);
}

static uint64_t
address_of(const struct pprof_profile *p, size_t sample, size_t frame)
{
    struct pprof_sample s = sample_of(p, sample);

    assert_true(frame < s.n_locations);
    return pprof_locations(p)[s.locations[frame]].address;
}

/* Of the leaf-most function of a frame. */
static const char *
name_of(const struct pprof_profile *p, size_t sample, size_t frame)
{
    struct pprof_sample s = sample_of(p, sample);
    const struct pprof_location *l = &pprof_locations(p)[s.locations[frame]];

    assert_true(l->n_lines > 0);
    return text_of(
        p, pprof_functions(p)[pprof_lines(p)[l->first_line].function].name);
}

static const char *
comment(const struct pprof_profile *p, size_t i)
{
    assert_true(i < pprof_comment_count(p));
    return text_of(p, pprof_comments(p)[i]);
}

/* ------------------------------------------------------------------------- */

static void
types_period_and_time_are_as_in_go(void **state)
{
    static const char *const types[] = {"alloc_objects", "alloc_space",
                                        "inuse_objects", "inuse_space"};
    static const char *const units[] = {"count", "bytes", "count", "bytes"};
    struct pprof_info info;
    struct pprof_profile *p;
    struct made m;
    size_t i;

    make(&m);
    p = written(&m, NULL);
    info = info_of(p);
    assert_int_equal(pprof_sample_type_count(p), 4);
    for (i = 0; i < 4; i++) {
        const struct pprof_value_type *t = &pprof_sample_types(p)[i];

        assert_string_equal(text_of(p, t->type), types[i]);
        assert_string_equal(text_of(p, t->unit), units[i]);
    }
    assert_string_equal(text_of(p, info.period_type.type), "space");
    assert_string_equal(text_of(p, info.period_type.unit), "bytes");
    assert_int_equal(info.period, 524288);
    assert_int_equal(info.time_ns, TIME_NS);
    assert_int_equal(info.duration_ns, 0);
    assert_string_equal(text_of(p, info.default_sample_type), "");
    assert_string_equal(text_of(p, info.drop_frames), cpprof__heap_drop_frames);
    assert_int_equal(pprof_sample_count(p), 0);
    assert_int_equal(pprof_mapping_count(p), 2);
    pprof_free(p);
    unmake(&m);
}

static void
allocs_has_alloc_space_as_its_default(void **state)
{
    struct cpprof_heap_options options = {.flags = CPPROF_FLAG_ALLOCS};
    struct pprof_profile *p;
    struct made m;

    make(&m);
    p = written(&m, &options);
    assert_string_equal(text_of(p, info_of(p).default_sample_type),
                        "alloc_space");
    pprof_free(p);
    unmake(&m);
}

static void
samples_are_newest_first_with_nothing_in_use_included(void **state)
{
    struct pprof_sample s;
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10310, 0x10010), 4, 3, 1024, 512);
    add_samples(&m, PCS(0x10320, 0x10010), 2, 0, 64, 8192);
    p = written(&m, NULL);
    assert_int_equal(pprof_sample_count(p), 2);
    assert_values(p, 0, 16384, 1048576, 0, 0);
    assert_values(p, 1, 2048, 2097152, 1536, 1572864);
    s = sample_of(p, 1);
    assert_int_equal(s.n_labels, 1);
    assert_string_equal(text_of(p, s.labels[0].key), "bytes");
    assert_string_equal(text_of(p, s.labels[0].unit), "bytes");
    assert_int_equal(s.labels[0].num, 1024);
    assert_int_equal(address_of(p, 1, 0), 0x10310);
    assert_int_equal(address_of(p, 1, 1), 0x10010);
    assert_string_equal(name_of(p, 1, 0), "grow");
    pprof_free(p);
    unmake(&m);
}

/* Scrapers that make differences tell samples apart by their labels: it must
 * not move when another block of nearly that size is sampled. */
static void
bytes_is_the_size_of_the_first_block_for_good(void **state)
{
    struct pprof_profile *p;
    struct made m;
    uint32_t bucket;
    int i;

    make(&m);
    bucket = add_samples(&m, PCS(0x10310, 0x10010), 1, 1, 1000, 1);
    for (i = 0; i < 2; i++) {
        p = written(&m, NULL);
        assert_int_equal(sample_of(p, 0).labels[0].num, 1000);
        pprof_free(p);
        cpprof__heap_count_alloc(&m.heap, bucket, 1020, FRACTION(1));
    }
    unmake(&m);
}

static void
sizes_of_32_bits_are_exact_or_near(void **state)
{
    static const uint64_t sizes[][2] = {{0, 0},
                                        {1, 1},
                                        {0x7fffffff, 0x7fffffff},
                                        {0x80000000, 0x80000000},
                                        {0x801fffff, 0x80100000},
                                        {UINT64_MAX, 0x7fffffffull << 20}};
    size_t i;

    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(
            cpprof__heap_size_of_code(cpprof__heap_size_code(sizes[i][0])),
            sizes[i][1]);
}

/* To the nearest each would be one object, and a tenth of all missing. */
static void
records_of_fractions_add_up_to_what_they_stand_for(void **state)
{
    struct pprof_profile *p;
    int64_t objects = 0;
    struct made m;
    size_t i;

    make(&m);
    for (i = 0; i < 2000; i++)
        add_samples(&m, PCS(0x20000 + i), 1, 1, 64, 1.1);
    p = written(&m, NULL);
    assert_int_equal(pprof_sample_count(p), 2000);
    for (i = 0; i < 2000; i++) {
        struct pprof_sample s = sample_of(p, i);

        assert_int_equal(s.values[0], s.values[2]);
        objects += s.values[0];
    }
    assert_in_range(objects, 2140, 2260); /* 2200, and 4 times its error */
    pprof_free(p);
    unmake(&m);
}

/* One stack, sizes of two classes. */
static void
one_stack_of_two_size_classes_is_two_samples(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10310), 1, 1, 64, 100);
    add_samples(&m, PCS(0x10310), 1, 1, 4096, 10);
    p = written(&m, NULL);
    assert_int_equal(pprof_sample_count(p), 2);
    assert_int_equal(pprof_location_count(p), 1);
    assert_int_equal(sample_of(p, 0).labels[0].num, 4096);
    assert_int_equal(sample_of(p, 1).labels[0].num, 64);
    pprof_free(p);
    unmake(&m);
}

static void
allocator_frames_at_the_leaf_are_hidden(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10110, 0x10210, 0x10310, 0x10120, 0x10010), 1, 0, 8,
                1);
    p = written(&m, NULL);
    assert_int_equal(sample_of(p, 0).n_locations, 3);
    assert_string_equal(name_of(p, 0, 0), "grow");
    assert_string_equal(name_of(p, 0, 1), "malloc"); /* not at the leaf */
    pprof_free(p);
    unmake(&m);
}

static void
allocator_frames_stay_when_there_are_no_others(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10110, 0x10210), 1, 0, 8, 1);
    p = written(&m, NULL);
    assert_int_equal(sample_of(p, 0).n_locations, 2);
    pprof_free(p);
    unmake(&m);
}

/* What is inlined into the program's function is for the reader to drop. */
static void
address_with_a_function_of_the_program_stays(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(INLINED_PC, 0x10010), 1, 0, 8, 1);
    p = written(&m, NULL);
    assert_int_equal(sample_of(p, 0).n_locations, 2);
    assert_int_equal(address_of(p, 0, 0), INLINED_PC);
    pprof_free(p);
    unmake(&m);
}

static void
without_names_nothing_is_hidden_and_nothing_resolved(void **state)
{
    struct cpprof_heap_options options = {.symbolize = CPPROF_SYMBOLIZE_NONE};
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10110, 0x10310), 1, 0, 8, 1);
    n_resolved = 0;
    p = written(&m, &options);
    assert_int_equal(sample_of(p, 0).n_locations, 2);
    assert_int_equal(pprof_function_count(p), 0);
    assert_int_equal(n_resolved, 0);
    pprof_free(p);
    unmake(&m);
}

static void
addresses_are_expected_before_the_first_is_resolved(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10110, 0x10310), 1, 0, 8, 1);
    add_samples(&m, PCS(0x10210), 1, 0, 8, 1);
    n_resolved = n_expected = 0;
    p = written(&m, NULL);
    assert_int_equal(n_expected, 3);
    assert_int_equal(n_before, 0);
    assert_int_not_equal(n_resolved, 0);
    pprof_free(p);
    unmake(&m);
}

static void
what_finds_no_room_becomes_a_frame(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.head->n_lost = 3;
    m.heap.head->lost_objects = FRACTION(30);
    m.heap.head->lost_bytes = FRACTION(1500001);
    p = written(&m, NULL);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_values(p, 0, 30, 1500001, 0, 0);
    assert_string_equal(name_of(p, 0, 0), "[lost samples]");
    assert_string_equal(comment(p, 0), "cpprof: heap of malloc, one in 524288 "
                                       "bytes, 3 samples lost");
    pprof_free(p);
    unmake(&m);
}

static void
peak_takes_what_was_in_use_then(void **state)
{
    struct cpprof_heap_options options = {.flags = CPPROF_FLAG_PEAK};
    struct cpprof__heap_bucket *bucket;
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.head->peaks[0].epoch = 5;
    m.heap.head->peaks[0].time_ns = 1000000000000000000; /* 2001-09-09 */
    bucket = &m.heap.buckets[add_samples(&m, PCS(0x10310), 9, 1, 64, 2)];
    bucket->epoch = 5; /* changed since the peak */
    bucket->peak_objects = (int64_t)FRACTION(8);
    bucket->peak_bytes = (int64_t)FRACTION(512);
    bucket->now_objects = (int64_t)FRACTION(2);
    bucket = &m.heap.buckets[add_samples(&m, PCS(0x10320), 3, 1, 64, 2)];
    bucket->epoch = 4; /* not changed: its last peak is an older one */
    bucket->peak_objects = 7;
    bucket->now_objects = (int64_t)FRACTION(2);
    bucket->now_bytes = (int64_t)FRACTION(128);
    p = written(&m, &options);
    assert_values(p, 1, 18, 1152, 8, 512);
    assert_values(p, 0, 6, 384, 2, 128);
    assert_string_equal(comment(p, 1),
                        "cpprof: in use as when it was most, until "
                        "2001-09-09 01:46:40 UTC");
    pprof_free(p);
    unmake(&m);
}

static void
labels_are_told_when_asked_for_and_joined_when_not(void **state)
{
    struct cpprof_heap_options options = {.flags = CPPROF_FLAG_LABELS};
    static const char text[] = "suser\0alice\0";
    const struct cpprof__label_set set = {1, sizeof text - 1, 1, text};
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.buckets[add_samples(&m, PCS(0x10310), 2, 1, 64, 2)].labels =
        cpprof__label_set_number(&m.tables.tree, &set);
    add_samples(&m, PCS(0x10310), 3, 1, 64, 2);
    p = written(&m, &options);
    assert_int_equal(pprof_sample_count(p), 2);
    assert_true(pprof_has_label(p, 1, "user", "alice"));
    assert_false(pprof_has_label(p, 0, "user", "alice"));
    pprof_free(p);
    p = written(&m, NULL);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_values(p, 0, 10, 640, 4, 256);
    pprof_free(p);
    unmake(&m);
}

static void
heap_of_its_own_has_a_profile_of_its_own(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.buckets[add_samples(&m, PCS(0x10310), 2, 1, 64, 2)].heap = 3;
    add_samples(&m, PCS(0x10320), 3, 1, 64, 2);
    m.source.number = 3;
    m.source.name = "gpu";
    p = written(&m, NULL);
    assert_int_equal(pprof_sample_count(p), 1);
    assert_int_equal(address_of(p, 0, 0), 0x10310);
    assert_string_equal(comment(p, 0), "cpprof: heap gpu, one in 524288 bytes");
    pprof_free(p);
    unmake(&m);
}

static void
changed_rate_is_told(void **state)
{
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.head->n_rates = 1;
    p = written(&m, NULL);
    assert_int_equal(pprof_comment_count(p), 2);
    pprof_free(p);
    unmake(&m);
}

/* ---- another process's tables ------------------------------------------- */

static void
unresolved_node_is_found_by_its_address(void **state)
{
    struct pprof_profile *p;
    struct made m;
    uint32_t i;

    make(&m);
    add_samples(&m, PCS(0x20310, 0x10010), 2, 1, 64, 2);
    for (i = 1; i < m.tables.tree.head->n_nodes; i++)
        m.tables.tree.nodes[i].mapping = CPPROF__TREE_UNRESOLVED;
    p = written(&m, NULL);
    assert_int_equal(pprof_locations(p)[sample_of(p, 0).locations[0]].mapping,
                     1);
    pprof_free(p);
    unmake(&m);
}

static void
numbers_that_point_nowhere_do_no_harm(void **state)
{
    struct cpprof_heap_options options = {.flags = CPPROF_FLAG_LABELS |
                                                   CPPROF_FLAG_PEAK};
    struct pprof_profile *p;
    struct made m;
    uint32_t i;

    make(&m);
    for (i = 0; i < 8; i++)
        add_samples(&m, PCS(0x10310 + 16 * i, 0x10010), 2, 1, 64, 2);
    m.heap.head->n_blocks = UINT32_MAX;
    m.heap.head->n_buckets = UINT32_MAX;
    m.heap.buckets[1].stack = UINT32_MAX;
    m.heap.buckets[2].labels = UINT32_MAX;
    m.heap.buckets[3].heap = UINT16_MAX;
    m.heap.buckets[4].alloc_objects = UINT64_MAX;
    m.heap.buckets[4].alloc_bytes = UINT64_MAX;
    m.heap.buckets[5].stack = 0;
    m.heap.blocks[6].bucket = UINT32_MAX;
    m.heap.blocks[7].weight = UINT64_MAX;
    m.tables.tree.nodes[2].parent = UINT32_MAX;
    m.tables.tree.nodes[3].parent = 3;
    m.tables.tree.nodes[4].mapping = 0x7ffffffe;
    m.tables.store.head->n_mappings = UINT32_MAX;
    m.source.number = UINT16_MAX;
    p = written(&m, &options);
    pprof_free(p);
    m.source.number = 0;
    p = written(&m, &options);
    assert_true(pprof_sample_count(p) >= 4);
    pprof_free(p);
    free(written_text(&m, CPPROF_FLAG_LABELS));
    unmake(&m);
}

/* ---- failures ------------------------------------------------------------ */

static void
write_error_is_returned_and_the_writer_closed(void **state)
{
    struct cpprof_heap_options options = {0};
    struct cpprof_error error;
    struct made m;
    int debug;

    make(&m);
    add_samples(&m, PCS(0x10310), 2, 1, 64, 2);
    for (debug = 0; debug < 2; debug++) {
        struct sink s = {.sys = ENOSPC};

        options.debug = debug;
        assert_int_equal(cpprof__heap_profile_write(&m.source, &options,
                                                    sink_writer(&s), &error),
                         CPPROF_SYSTEM);
        assert_string_equal(error.text, "write: No space left on device");
        assert_int_equal(s.n_closes, 1);
        assert_int_equal(s.failed, 1);
        cpprof__buffer_free(&s.bytes);
    }
    unmake(&m);
}

/* ---- names and scaling --------------------------------------------------- */

/* Without parameters, as readers match it. */
static bool
is_dropped(const regex_t *re, const char *name)
{
    char bare[256];

    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "("), name);
    return regexec(re, bare, 0, NULL, 0) == 0;
}

static void
hidden_names_are_those_of_drop_frames(void **state)
{
    static const struct {
        const char *name;
        bool hidden;
    } names[] = {
        {"malloc", true},
        {"operator new(unsigned long)", true},
        {"operator new[](unsigned long, std::align_val_t)", true},
        {"__libc_malloc", true},
        {"tcmalloc::allocate_full_malloc_oom(unsigned long)", true},
        {"je_malloc_default", true},
        {"mi_heap_malloc_zero", true},
        {"std::__new_allocator<int>::allocate(unsigned long, void const*)",
         true},
        {"__gnu_cxx::new_allocator<a::b<c> >::allocate(unsigned long)", true},
        {"std::allocator_traits<std::allocator<int> >::allocate(int)", true},
        {"__gnu_cxx::new_allocator::allocate", true},
        {"cpprof_heap_record_in", true},
        {"do_malloc_pages", true},
        {"::do_malloc", true},
        {"reallocarray", true},
        {"allocate", false},
        {"main", false},
        {"xmalloc", false},
        {"malloc_hook", false},
        {"operator", false},
        {"operator newt", false},
        {"std::allocator<int>::allocated(int)", false},
        {"strdup", false},
        {"my::malloc", false},
    };
    char *anchored;
    regex_t re;
    size_t i;

    assert_true(asprintf(&anchored, "^(%s)$", cpprof__heap_drop_frames) > 0);
    assert_int_equal(regcomp(&re, anchored, REG_EXTENDED | REG_NOSUB), 0);
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        if (cpprof__heap_hides(names[i].name) != names[i].hidden)
            fail_msg("hides %s", names[i].name);
        if (is_dropped(&re, names[i].name) != names[i].hidden)
            fail_msg("drops %s", names[i].name);
    }
    regfree(&re);
    free(anchored);
}

/* Figures of Go's own test. */
static void
scaling_is_that_of_go(void **state)
{
    static const int64_t cases[][5] = {
        {4, 4096, 524288, 2050, 2099200},
        {3, 3072, 524288, 1537, 1574400},
        {1, 524288, 524288, 1, 829411},
        {3, 1536, 524288, 3073, 1573632},
        {0, 4096, 524288, 0, 0},
        {4, 0, 524288, 0, 0},
        {4, 4096, 1, 4, 4096},
        {4, 4096, 0, 4, 4096},
        {4, 4096, -1, 4, 4096},
        {1, 1 << 30, 524288, 1, 1 << 30},
        {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
    };
    int64_t count, size;
    size_t i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        cpprof_heap_scale_sample(cases[i][0], cases[i][1], cases[i][2], &count,
                                 &size);
        assert_int_equal(count, cases[i][3]);
        assert_int_equal(size, cases[i][4]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_period_and_time_are_as_in_go),
        cmocka_unit_test(allocs_has_alloc_space_as_its_default),
        cmocka_unit_test(samples_are_newest_first_with_nothing_in_use_included),
        cmocka_unit_test(bytes_is_the_size_of_the_first_block_for_good),
        cmocka_unit_test(sizes_of_32_bits_are_exact_or_near),
        cmocka_unit_test(records_of_fractions_add_up_to_what_they_stand_for),
        cmocka_unit_test(one_stack_of_two_size_classes_is_two_samples),
        cmocka_unit_test(allocator_frames_at_the_leaf_are_hidden),
        cmocka_unit_test(allocator_frames_stay_when_there_are_no_others),
        cmocka_unit_test(address_with_a_function_of_the_program_stays),
        cmocka_unit_test(without_names_nothing_is_hidden_and_nothing_resolved),
        cmocka_unit_test(addresses_are_expected_before_the_first_is_resolved),
        cmocka_unit_test(what_finds_no_room_becomes_a_frame),
        cmocka_unit_test(peak_takes_what_was_in_use_then),
        cmocka_unit_test(labels_are_told_when_asked_for_and_joined_when_not),
        cmocka_unit_test(heap_of_its_own_has_a_profile_of_its_own),
        cmocka_unit_test(changed_rate_is_told),
        cmocka_unit_test(unresolved_node_is_found_by_its_address),
        cmocka_unit_test(numbers_that_point_nowhere_do_no_harm),
        cmocka_unit_test(write_error_is_returned_and_the_writer_closed),
        cmocka_unit_test(hidden_names_are_those_of_drop_frames),
        cmocka_unit_test(scaling_is_that_of_go),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
