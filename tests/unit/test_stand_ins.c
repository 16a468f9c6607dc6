/* SPDX-License-Identifier: MIT */
/*
 * Names made of addresses: the same in profiles of one build of a file, and
 * different ones where profiles of two builds are merged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"
#include <cpprof/pprof.h>

#define NEW(type, ...)                                                         \
    (&(struct pprof_new_##type){.size = sizeof(struct pprof_new_##type),       \
                                __VA_ARGS__})

static struct cpprof_error error;

#define OK(call) assert_int_equal(call, CPPROF_OK)

/* A profile of one sample, of a file and a build id, in a function. */
static struct pprof_profile *
make(const char *file, const char *build_id, const char *function)
{
    struct pprof_profile *p;
    struct pprof_line line = {0};
    uint32_t mapping, location;

    OK(pprof_new(&p, &error));
    OK(pprof_add_sample_type(p, "samples", "count", &error));
    OK(pprof_set_period(p, "cpu", "nanoseconds", 1, &error));
    OK(pprof_add_mapping(p,
                         NEW(mapping, .start = 0x1000, .limit = 0x5000,
                             .file = file, .build_id = build_id),
                         &mapping, &error));
    OK(pprof_add_function(
        p, NEW(function, .name = function, .system_name = function),
        &line.function, &error));
    OK(pprof_add_location(p,
                          NEW(location, .mapping = mapping, .address = 0x1100,
                              .lines = &line, .n_lines = 1),
                          &location, &error));
    OK(pprof_add_sample(p,
                        NEW(sample, .locations = &location, .n_locations = 1,
                            .values = (int64_t[]){1}),
                        NULL, &error));
    return p;
}

/* Merge two that make() makes; frees them. */
static struct pprof_profile *
merge(struct pprof_profile *a, struct pprof_profile *b)
{
    struct pprof_profile *both[] = {a, b}, *sum;

    OK(pprof_merge(both, 2, &sum, &error));
    pprof_free(a);
    pprof_free(b);
    return sum;
}

/* The name of location number i. */
static const char *
name_of(const struct pprof_profile *p, size_t i)
{
    const struct pprof_location *l = &pprof_locations(p)[i];

    assert_int_equal(l->n_lines, 1);
    return pprof_text(
        p, pprof_functions(p)[pprof_lines(p)[l->first_line].function].name,
        NULL);
}

static void
check_names(const char *file, const char *build_id, const char *function,
            const char *first, const char *second)
{
    struct pprof_profile *p =
        merge(make("/lib/libx.so.1", "aaaaaaaaaaaa", "[libx.so.1+0x100]"),
              make(file, build_id, function));

    assert_string_equal(name_of(p, 0), first);
    assert_string_equal(name_of(p, pprof_location_count(p) - 1), second);
    pprof_free(p);
}

static void
stand_ins_of_one_build_are_one_function(void **state)
{
    check_names("/lib/libx.so.1", "aaaaaaaaaaaa", "[libx.so.1+0x100]",
                "[libx.so.1+0x100]", "[libx.so.1+0x100]");
}

static void
stand_ins_of_two_builds_are_two_functions(void **state)
{
    check_names("/opt/libx.so.1", "bbbbbbbbbbbb", "[libx.so.1+0x100]",
                "[libx.so.1+0x100 of aaaaaaaa]",
                "[libx.so.1+0x100 of bbbbbbbb]");
}

static void
stand_ins_of_two_files_keep_their_names(void **state)
{
    check_names("/lib/liby.so.1", "bbbbbbbbbbbb", "[liby.so.1+0x100]",
                "[libx.so.1+0x100]", "[liby.so.1+0x100]");
}

static void
true_names_of_another_build_stay(void **state)
{
    static const char *const names[] = {
        "work", "[libx.so.1]", "[a+b]", "[libx.so.1+0x100x]", "[+0x]", "["};
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        check_names("/lib/libx.so.1", "bbbbbbbbbbbb", names[i],
                    "[libx.so.1+0x100 of aaaaaaaa]", names[i]);
}

static void
failed_allocation_fails_the_merge(void **state)
{
    struct pprof_profile *both[2] = {NULL}, *sum = NULL;
    enum cpprof_status status = CPPROF_NOMEM;
    long n;

    for (n = 0; status != CPPROF_OK; n++) {
        both[0] = make("/lib/libx.so.1", "aaaa", "[libx.so.1+0x100]");
        both[1] = make("/lib/libx.so.1", "bbbb", "[libx.so.1+0x100]");
        oom_watch();
        oom.countdown = n;
        status = pprof_merge(both, 2, &sum, &error);
        oom.countdown = -1;
        pprof_free(both[0]);
        pprof_free(both[1]);
        if (status != CPPROF_OK)
            assert_int_equal(status, CPPROF_NOMEM);
    }
    assert_true(n > 10);
    assert_string_equal(name_of(sum, 0), "[libx.so.1+0x100 of aaaa]");
    pprof_free(sum);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stand_ins_of_one_build_are_one_function),
        cmocka_unit_test(stand_ins_of_two_builds_are_two_functions),
        cmocka_unit_test(stand_ins_of_two_files_keep_their_names),
        cmocka_unit_test(true_names_of_another_build_stay),
        cmocka_unit_test(failed_allocation_fails_the_merge),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
