/* SPDX-License-Identifier: MIT */
/* Frames of scripts in profiles: named and without an address, in a mapping of
 * their own behind the others, which says the truth about them. */
#include "builder_fixture.h"

#include "collect/signal/tables/scripts.h"
#include "collect/store/mappings.h"

static struct cpprof__scripts scripts;
static void *block;

static int
make_scripts(void **state)
{
    (void)state;
    block = calloc(1, CPPROF__SCRIPTS_BYTES);
    assert_non_null(block);
    assert_true(cpprof__scripts_make(&scripts, block, NULL));
    return 0;
}

static int
free_scripts(void **state)
{
    (void)state;
    free(block);
    return 0;
}

static uint64_t
location(const char *mapping, const char *name, const char *file, int64_t line)
{
    const struct cpprof__script_location script = {
        .mapping = mapping,
        .name = name,
        .system_name = *name ? "M.system" : "",
        .file = file,
        .start_line = 3,
        .line = line,
    };

    return cpprof__scripts_add(&scripts, &script);
}

static void
begin_with_scripts(struct fixture *f)
{
    begin(f);
    cpprof__builder_use_scripts(f->builder, &scripts);
}

static const struct walk_function *
function_of(const struct walk *w, size_t location)
{
    assert_int_equal(w->locations[location].n_lines, 1);
    return &w->functions[w->locations[location].lines[0].function - 1];
}

static void
location_becomes_a_location_with_all_its_texts(void **state)
{
    const struct walk_function *function;
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_with_scripts(&f);
    sample(&f, 1, PCS(0x1020, location("[lua]", "sort", "@a.lua", 7), 0x1020));
    assert_int_equal(f.symbolizer.n_resolved, 1);
    w = end(&f);
    assert_int_equal(w->n_locations, 2);
    assert_int_equal(w->samples[0].n_locations, 3);
    assert_int_equal(w->locations[1].address, 0);
    assert_int_equal(w->locations[1].lines[0].line, 7);
    function = function_of(w, 1);
    assert_string_equal(walk_string(w, function->name), "sort");
    assert_string_equal(walk_string(w, function->system_name), "M.system");
    assert_string_equal(walk_string(w, function->file), "@a.lua");
    assert_int_equal(function->start_line, 3);
    walk_free(w);
}

static void
mapping_of_scripts_stands_behind_all_others(void **state)
{
    static const struct cpprof__symbolizer_mapping late = {
        0x5000, 0x6000, 0, "/lib/late.so", "", 0};
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_without_mappings(&f, &cpu_head);
    cpprof__builder_use_scripts(f.builder, &scripts);
    sample(&f, 1, PCS(location("[lua]", "f", "a.lua", 7)));
    cpprof__builder_add_mapping(f.builder, &late);
    sample(&f, 1, PCS(location("[lua]", "f", "a.lua", 8)));
    assert_int_equal(f.symbolizer.n_mappings, 1);
    w = end(&f);
    assert_int_equal(w->n_mappings, 2);
    assert_string_equal(walk_string(w, w->mappings[0].path), "/lib/late.so");
    assert_string_equal(walk_string(w, w->mappings[1].path), "[lua]");
    assert_int_equal(w->mappings[1].start, 0);
    assert_int_equal(w->mappings[1].limit, 0);
    assert_int_equal(w->locations[0].mapping, w->mappings[1].id);
    assert_int_equal(w->locations[1].mapping, w->mappings[1].id);
    walk_free(w);
}

static void
check_has(const struct walk_mapping *m, unsigned functions, unsigned files,
          unsigned lines)
{
    assert_int_equal(m->has[0], functions);
    assert_int_equal(m->has[1], files);
    assert_int_equal(m->has[2], lines);
    assert_int_equal(m->has[3], 0);
}

static void
flags_hold_for_every_location_of_a_mapping(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_with_scripts(&f);
    sample(&f, 1,
           PCS(location("[a]", "f", "a", 1), location("[b]", "f", "", 1),
               location("[c]", "f", "c", 0), location("[a]", "g", "a", 2)));
    w = end(&f);
    assert_int_equal(w->n_mappings, 5);
    check_has(&w->mappings[2], 1, 1, 1);
    check_has(&w->mappings[3], 1, 0, 1);
    check_has(&w->mappings[4], 1, 1, 0);
    walk_free(w);
}

static void
function_without_a_name_is_called_as_its_file(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin_with_scripts(&f);
    sample(&f, 1, PCS(location("[lua]", "", "main.lua", 1)));
    w = end(&f);
    assert_string_equal(walk_string(w, function_of(w, 0)->name), "main.lua");
    assert_string_equal(walk_string(w, function_of(w, 0)->system_name),
                        "main.lua");
    walk_free(w);
}

static void
what_is_in_no_table_is_unknown(void **state)
{
    struct fixture f;
    struct walk *w;

    (void)state;
    begin(&f); /* no scripts */
    sample(&f, 1, PCS(CPPROF__SCRIPT_NO_ROOM, location("[lua]", "f", "a", 1)));
    w = end(&f);
    assert_int_equal(w->n_locations, 2);
    assert_int_equal(w->n_mappings, 2);
    assert_string_equal(walk_string(w, function_of(w, 0)->name), "[unknown]");
    assert_string_equal(walk_string(w, function_of(w, 1)->name), "[unknown]");
    assert_int_equal(w->locations[0].mapping, 0);
    assert_int_equal(w->locations[0].address, 0);
    walk_free(w);
}

static void
what_was_forgotten_is_written_again_in_the_same_mapping(void **state)
{
    struct fixture f;
    struct walk *w;
    uint64_t pc = location("[lua]", "f", "a.lua", 1);

    (void)state;
    begin_with_scripts(&f);
    sample(&f, 1, PCS(pc));
    cpprof__builder_forget(f.builder);
    sample(&f, 1, PCS(0x1f00, pc));
    w = end(&f);
    assert_int_equal(w->n_mappings, 3);
    assert_int_equal(w->n_locations, 3);
    assert_int_equal(w->locations[2].mapping, w->locations[0].mapping);
    assert_string_equal(walk_string(w, function_of(w, 2)->name), "f");
    walk_free(w);
}

static bool
hides_all(const char *name)
{
    return true;
}

static void
location_at_the_leaf_is_not_hidden(void **state)
{
    const struct cpprof__builder_frame stack[] = {
        {0x1020, 0},
        {location("[lua]", "malloc", "a.lua", 1), CPPROF__NO_MAPPING},
        {0x1020, 0},
    };
    struct fixture f;

    (void)state;
    begin_with_scripts(&f);
    assert_int_equal(cpprof__builder_n_hidden(f.builder, stack, 3, hides_all),
                     1);
    walk_free(end(&f));
}

static void
location_lies_in_no_mapping_and_no_maps_are_read_for_it(void **state)
{
    struct cpprof__mappings *m = calloc(1, sizeof *m);
    struct cpprof__store store;
    void *memory = calloc(1, cpprof__store_bytes());
    uint32_t mapping = 0;
    uint64_t pc;

    (void)state;
    assert_non_null(m);
    assert_non_null(memory);
    assert_true(cpprof__store_make(&store, memory));
    cpprof__mappings_init(m, &store, true);
    cpprof__mappings_begin(m);
    pc = location("[lua]", "f", "a.lua", 1);
    cpprof__mappings_find(m, &pc, 1, &mapping);
    assert_int_equal(mapping, CPPROF__NO_MAPPING);
    assert_false(m->refreshed);
    assert_int_equal(store.head->n_mappings, 0);
    free(memory);
    free(m);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_scripts, free_scripts)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(location_becomes_a_location_with_all_its_texts),
        CASE(mapping_of_scripts_stands_behind_all_others),
        CASE(flags_hold_for_every_location_of_a_mapping),
        CASE(function_without_a_name_is_called_as_its_file),
        CASE(what_is_in_no_table_is_unknown),
        CASE(what_was_forgotten_is_written_again_in_the_same_mapping),
        CASE(location_at_the_leaf_is_not_hidden),
        CASE(location_lies_in_no_mapping_and_no_maps_are_read_for_it),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
