/* SPDX-License-Identifier: MIT */
/*
 * Debug files that are not on this machine: they are asked for if there is who
 * brings them, and nobody else is, whatever $DEBUGINFOD_URLS says.
 */
#include "symbol_fixture.h"

static char asked_for[CPPROF_BUILD_ID_MAX];
static const char *brought; /* or NULL */

static bool
bring(void *ctx, const char *build_id, char *path, size_t n_path)
{
    assert_ptr_equal(ctx, asked_for);
    strncat(asked_for, build_id, sizeof asked_for - 1);
    if (brought)
        snprintf(path, n_path, "%s/%s", folder, brought);
    return brought != NULL;
}

/* A library whose debug information is elsewhere, and that of another one. */
static int
make_library(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("inline.c", INLINE_SOURCE);
    return !run("gcc -O2 -fPIC -shared -g -Wl,--build-id=sha1 -o full.so "
                "%s/inline.c && objcopy --strip-debug full.so away.so && "
                "objcopy --only-keep-debug full.so right.debug && "
                "gcc -O1 -fPIC -shared -g -Wl,--build-id=sha1 -o other.so "
                "%s/inline.c",
                folder, folder);
}

static size_t
ask(struct cpprof__fetcher fetcher)
{
    struct cpprof__symbolizer_options options = {.fetcher = fetcher};
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;
    size_t n;

    *asked_for = 0;
    load(&l, "away.so", "at_leaf");
    l.symbolizer = cpprof__symbolizer.make(&options);
    l.index = cpprof__symbolizer.add_mapping(l.symbolizer, &l.mapping);
    n = frames_at(&l, "at_leaf", frames);
    assert_string_equal(frames[n - 1].name, "outer");
    if (fetcher.debug_file)
        assert_int_equal(strlen(asked_for), 40);
    unload(&l);
    return n;
}

static void
nobody_is_asked_where_nobody_brings_files(void **state)
{
    setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
    assert_int_equal(ask((struct cpprof__fetcher){0}), 1);
    assert_false(run("grep -q libdebuginfod /proc/%d/maps", getpid()));
}

static void
debug_file_that_is_brought_is_used(void **state)
{
    brought = "right.debug";
    assert_int_equal(
        ask((struct cpprof__fetcher){.debug_file = bring, .ctx = asked_for}),
        3);
}

static void
one_of_another_build_is_not(void **state)
{
    brought = "other.so";
    assert_int_equal(
        ask((struct cpprof__fetcher){.debug_file = bring, .ctx = asked_for}),
        1);
    brought = "inline.c";
    assert_int_equal(
        ask((struct cpprof__fetcher){.debug_file = bring, .ctx = asked_for}),
        1);
    brought = "nowhere";
    assert_int_equal(
        ask((struct cpprof__fetcher){.debug_file = bring, .ctx = asked_for}),
        1);
}

static void
nothing_that_is_brought_is_no_harm(void **state)
{
    brought = NULL;
    assert_int_equal(
        ask((struct cpprof__fetcher){.debug_file = bring, .ctx = asked_for}),
        1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_asked_where_nobody_brings_files),
        cmocka_unit_test(debug_file_that_is_brought_is_used),
        cmocka_unit_test(one_of_another_build_is_not),
        cmocka_unit_test(nothing_that_is_brought_is_no_harm),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, remove_folder);
}
