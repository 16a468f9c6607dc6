/* SPDX-License-Identifier: MIT */
/* Names that are remembered, over a symbolizer that counts what it is asked. */
#include "heap_fixture.h"

#include "collect/encode/names.h"

#include "collect/store/tables.h"

#include <dlfcn.h>
#include <pthread.h>

static const struct cpprof__symbolizer_mapping with_id = {
    0x10000, 0x20000, 0, "/bin/program", "abcd", 0};
static const struct cpprof__symbolizer_mapping without_id = {
    0x10000, 0x20000, 0, "/bin/other", "", 0};
static const struct cpprof__symbolizer_mapping jit = {0x10000, 0x20000, 0,
                                                      "",      "",      0};

/* Ask once, in a profile of its own; how often it was asked underneath. */
static unsigned
ask(const struct cpprof__symbolizer_mapping *mapping, uint64_t pc,
    bool functions_only, size_t expected)
{
    const struct cpprof__symbolizer_ops *ops = cpprof__names_over(&fake_ops);
    struct cpprof__symbolizer_options options = {.functions_only =
                                                     functions_only};
    struct cpprof__symbolizer *s = ops->make(&options);
    struct cpprof__frame frames[256];
    unsigned before = n_resolved;
    size_t number, n;

    assert_non_null(s);
    number = ops->add_mapping(s, mapping);
    assert_int_equal(number, 0);
    n = ops->resolve(s, number, pc, frames, 256);
    assert_int_equal(n, expected);
    if (n == 3) {
        assert_string_equal(frames[1].name, "push");
        assert_string_equal(frames[2].name, "grow");
        assert_string_equal(frames[2].file, "/src/a.c");
        assert_int_equal(frames[2].line, 0x80);
        assert_int_equal(frames[2].entry, 0x10300);
        assert_true(ops->knows_inlines(s, number));
    }
    ops->free(s);
    return n_resolved - before;
}

static void
second_profile_finds_all_that_the_first_asked_for(void **state)
{
    unsigned before;

    cpprof__names_forget();
    assert_int_equal(ask(&with_id, INLINED_PC, false, 3), 1);
    before = n_made;
    assert_int_equal(ask(&with_id, INLINED_PC, false, 3), 0);
    assert_int_equal(n_made, before); /* not even opened */
    assert_int_equal(ask(&with_id, 0x10010, false, 1), 1);
    assert_true(cpprof__names_held() > 0);
    cpprof__names_forget();
    assert_int_equal(cpprof__names_held(), 0);
    assert_int_equal(ask(&with_id, INLINED_PC, false, 3), 1);
}

static void
another_image_or_another_kind_of_name_is_asked_for(void **state)
{
    struct cpprof__symbolizer_mapping other = with_id;

    cpprof__names_forget();
    assert_int_equal(ask(&with_id, 0x10310, false, 1), 1);
    assert_int_equal(ask(&with_id, 0x10310, true, 1), 1);
    other.build_id = "abce";
    assert_int_equal(ask(&other, 0x10310, false, 1), 1);
    other = with_id;
    other.offset = 4096;
    assert_int_equal(ask(&other, 0x10310, false, 1), 1);
    assert_int_equal(ask(&with_id, 0x10310, false, 1), 0);
    assert_int_equal(ask(&without_id, 0x10310, false, 1), 1);
    assert_int_equal(ask(&without_id, 0x10310, false, 1), 0);
}

static void
code_of_no_file_is_always_asked_for(void **state)
{
    cpprof__names_forget();
    assert_int_equal(ask(&jit, 0x10310, false, 1), 1);
    assert_int_equal(ask(&jit, 0x10310, false, 1), 1);
}

static void
that_nothing_is_known_is_remembered_too(void **state)
{
    cpprof__names_forget();
    assert_int_equal(ask(&with_id, 0x1ff00, false, 0), 1);
    assert_int_equal(ask(&with_id, 0x1ff00, false, 0), 0);
}

static void
only_what_is_not_remembered_is_expected_underneath(void **state)
{
    const struct cpprof__symbolizer_ops *ops = cpprof__names_over(&fake_ops);
    struct cpprof__symbolizer_options options = {0};
    struct cpprof__symbolizer *s;
    unsigned made, expected;

    cpprof__names_forget();
    ask(&with_id, INLINED_PC, false, 3);
    s = ops->make(&options);
    assert_int_equal(ops->add_mapping(s, &with_id), 0);
    made = n_made;
    expected = n_expected;
    ops->expect(s, 0, INLINED_PC);
    ops->expect(s, 1, 0x10010); /* of no mapping */
    assert_int_equal(n_expected, expected);
    assert_int_equal(n_made, made);
    ops->expect(s, 0, 0x10010);
    assert_int_equal(n_expected, expected + 1);
    ops->free(s);
}

/* ---- the symbolizer itself ----------------------------------------------- */

/* Ask for a new address; how many symbolizers were made. */
static unsigned
make_for(const struct cpprof__symbolizer_mapping *mapping, bool functions_only)
{
    static uint64_t pc = 0x10000;
    unsigned before = n_made;

    assert_int_equal(ask(mapping, ++pc, functions_only, 1), 1);
    return n_made - before;
}

static void
new_address_is_asked_of_the_symbolizer_that_was_kept(void **state)
{
    cpprof__names_forget();
    n_fake_bytes = 1000;
    assert_int_equal(make_for(&with_id, false), 1);
    assert_int_equal(make_for(&with_id, false), 0);
    assert_true(cpprof__names_held() >= 1000);
    assert_int_equal(make_for(&without_id, false), 0);
    assert_int_equal(make_for(&with_id, true), 1);
    assert_int_equal(make_for(&with_id, true), 0);
    cpprof__names_forget();
    assert_int_equal(cpprof__names_held(), 0);
    assert_int_equal(make_for(&with_id, true), 1);
    cpprof__names_forget();
    n_fake_bytes = SIZE_MAX;
}

static void
symbolizer_is_not_kept_if_it_is_large(void **state)
{
    cpprof__names_forget();
    n_fake_bytes = CPPROF__NAMES_INNER_BYTES + 1;
    assert_int_equal(make_for(&with_id, false), 1);
    assert_int_equal(make_for(&with_id, false), 1);
    assert_true(cpprof__names_held() < CPPROF__NAMES_INNER_BYTES);
    n_fake_bytes = SIZE_MAX;
}

static void
what_was_kept_is_trimmed_before_it_is_asked_again(void **state)
{
    unsigned before;

    cpprof__names_forget();
    n_fake_bytes = 1000;
    assert_int_equal(make_for(&with_id, false), 1);
    before = n_trimmed;
    assert_int_equal(make_for(&with_id, false), 0);
    assert_int_equal(n_trimmed, before + 2); /* and behind it */
    cpprof__names_forget();
    n_fake_bytes = SIZE_MAX;
}

static void
symbolizer_is_given_back_if_something_was_unloaded(void **state)
{
    void *library;
    size_t n_held;

    cpprof__names_forget();
    n_fake_bytes = 1000;
    assert_int_equal(make_for(&with_id, false), 1);
    assert_int_equal(cpprof__tables_make(NULL), CPPROF_OK);
    library = dlopen("libresolv.so.2", RTLD_NOW);
    assert_non_null(library);
    dlclose(library);
    n_held = cpprof__names_held();
    cpprof__tables_after_unload();
    cpprof__names_after_unload();
    assert_true(cpprof__names_held() + 1000 <= n_held);
    assert_int_equal(make_for(&with_id, false), 1);
    cpprof__names_forget();
    n_fake_bytes = SIZE_MAX;
}

static void
profile_beside_another_leaves_what_was_kept_alone(void **state)
{
    const struct cpprof__symbolizer_ops *ops = cpprof__names_over(&fake_ops);
    struct cpprof__symbolizer_options options = {0};
    struct cpprof__symbolizer *first;

    cpprof__names_forget();
    n_fake_bytes = 1000;
    assert_int_equal(make_for(&with_id, false), 1);
    first = ops->make(&options);
    assert_int_equal(make_for(&with_id, false), 1);
    ops->free(first);
    assert_int_equal(make_for(&with_id, false), 0);
    cpprof__names_forget();
    n_fake_bytes = SIZE_MAX;
}

/* ---- bounds -------------------------------------------------------------- */

/* Names of a kilobyte each. */
static size_t
long_resolve(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc,
             struct cpprof__frame *frames, size_t max)
{
    static char name[1024];

    n_resolved++;
    memset(name, 'x', sizeof name - 1);
    snprintf(name, 32, "%llx", (unsigned long long)pc);
    name[strlen(name)] = 'x';
    frames[0] = (struct cpprof__frame){.name = name, .system_name = name};
    return 1;
}

static unsigned
ask_for_many(uint64_t from, size_t n)
{
    struct cpprof__symbolizer_ops long_ops = fake_ops;
    struct cpprof__symbolizer_options options = {0};
    const struct cpprof__symbolizer_ops *ops;
    struct cpprof__frame frames[256];
    struct cpprof__symbolizer *s;
    unsigned before = n_resolved;
    size_t i;

    long_ops.resolve = long_resolve;
    ops = cpprof__names_over(&long_ops);
    s = ops->make(&options);
    ops->add_mapping(s, &with_id);
    for (i = 0; i < n; i++) {
        assert_int_equal(ops->resolve(s, 0, from + i, frames, 256), 1);
        assert_int_equal(strtoull(frames[0].name, NULL, 16), from + i);
    }
    ops->free(s);
    return n_resolved - before;
}

/* Some 16 000 of them fit. */
static void
memory_is_bounded_and_what_is_in_use_is_kept(void **state)
{
    cpprof__names_forget();
    assert_int_equal(ask_for_many(0, 40000), 40000);
    assert_true(cpprof__names_held() <= CPPROF__NAMES_BYTES + (1 << 20));
    assert_true(cpprof__names_held() > CPPROF__NAMES_BYTES / 2);
    /* Full, and used: what is there goes on to be of use. */
    assert_true(ask_for_many(0, 40000) < 30000);
    /* Full of what nobody asks for any more: forgotten, then learnt anew. */
    assert_int_equal(ask_for_many(1u << 20, 1000), 1000);
    assert_int_equal(cpprof__names_held(), 0);
    assert_int_equal(ask_for_many(1u << 20, 1000), 1000);
    assert_int_equal(ask_for_many(1u << 20, 1000), 0);
    cpprof__names_forget();
}

/* ---- several at once ------------------------------------------------------
 */

/* The second does not wait for long, and gets its answers underneath. */
static void
profile_beside_another_goes_without(void **state)
{
    const struct cpprof__symbolizer_ops *ops = cpprof__names_over(&fake_ops);
    struct cpprof__symbolizer_options options = {0};
    struct cpprof__symbolizer *first;

    cpprof__names_forget();
    assert_int_equal(ask(&with_id, INLINED_PC, false, 3), 1);
    first = ops->make(&options);
    assert_int_equal(ask(&with_id, INLINED_PC, false, 3), 1);
    ops->free(first);
    assert_int_equal(ask(&with_id, INLINED_PC, false, 3), 0);
}

static void *
ask_often(void *arg)
{
    int i;

    for (i = 0; i < 200; i++) {
        const struct cpprof__symbolizer_ops *ops =
            cpprof__names_over(&fake_ops);
        struct cpprof__symbolizer_options options = {0};
        struct cpprof__symbolizer *s = ops->make(&options);
        struct cpprof__frame frames[256];
        size_t number = ops->add_mapping(s, &with_id);

        assert_int_equal(
            ops->resolve(s, number, 0x10000 + (uint64_t)i, frames, 256), 1);
        ops->free(s);
    }
    return NULL;
}

static void
threads_that_ask_at_once_all_get_answers(void **state)
{
    pthread_t threads[4];
    size_t i;

    cpprof__names_forget();
    for (i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cpprof__names_forget();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_profile_finds_all_that_the_first_asked_for),
        cmocka_unit_test(another_image_or_another_kind_of_name_is_asked_for),
        cmocka_unit_test(code_of_no_file_is_always_asked_for),
        cmocka_unit_test(that_nothing_is_known_is_remembered_too),
        cmocka_unit_test(only_what_is_not_remembered_is_expected_underneath),
        cmocka_unit_test(new_address_is_asked_of_the_symbolizer_that_was_kept),
        cmocka_unit_test(symbolizer_is_not_kept_if_it_is_large),
        cmocka_unit_test(what_was_kept_is_trimmed_before_it_is_asked_again),
        cmocka_unit_test(symbolizer_is_given_back_if_something_was_unloaded),
        cmocka_unit_test(profile_beside_another_leaves_what_was_kept_alone),
        cmocka_unit_test(memory_is_bounded_and_what_is_in_use_is_kept),
        cmocka_unit_test(profile_beside_another_goes_without),
        cmocka_unit_test(threads_that_ask_at_once_all_get_answers),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
