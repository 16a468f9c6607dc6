/* SPDX-License-Identifier: MIT */
/* What is left of locations when details are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"
#include "views.h"

#define ALL                                                                    \
    (PPROF_KEEP_INLINES | PPROF_KEEP_FUNCTIONS | PPROF_KEEP_FILES |            \
     PPROF_KEEP_LINES | PPROF_KEEP_COLUMNS | PPROF_KEEP_ADDRESSES)

#define TOTAL 22222

/* The samples of the reference, and one that differs in the column. */
static struct pprof_profile *
make(void)
{
    static const uint64_t stacks[][2] = {{1000},       {2000, 1000},
                                         {3000, 1000}, {3001, 1000},
                                         {3002, 1000}, {3003, 1000}};
    static const int64_t values[][2] = {{1000, 1},  {100, 1}, {10, 1},
                                        {10000, 1}, {1, 1},   {11111, 1}};
    struct fixture f = {0};
    size_t i;

    reference_types(&f);
    reference_tables(&f, 1);
    for (i = 0; i < 6; i++)
        fixture_sample(&f, stacks[i], i ? 2 : 1, values[i], NULL);
    return fixture_must_read(&f);
}

static void
expect_flags(const struct pprof_profile *p, uint32_t keep)
{
    uint32_t flags = 0;
    size_t i;

    flags |= keep & PPROF_KEEP_INLINES ? PPROF_HAS_INLINE_FRAMES : 0;
    flags |= keep & PPROF_KEEP_FUNCTIONS ? PPROF_HAS_FUNCTIONS : 0;
    flags |= keep & PPROF_KEEP_FILES ? PPROF_HAS_FILENAMES : 0;
    flags |= keep & PPROF_KEEP_LINES ? PPROF_HAS_LINE_NUMBERS : 0;
    for (i = 0; i < pprof_mapping_count(p); i++)
        assert_int_equal(pprof_mappings(p)[i].flags, flags);
    assert_int_equal(pprof_has_functions(p),
                     (keep & PPROF_KEEP_FUNCTIONS) != 0);
    assert_int_equal(pprof_has_file_lines(p),
                     keep & PPROF_KEEP_FILES && keep & PPROF_KEEP_LINES);
}

static void
expect_functions(const struct pprof_profile *p, uint32_t keep)
{
    size_t i;

    for (i = 0; i < pprof_function_count(p); i++) {
        const struct pprof_function *f = &pprof_functions(p)[i];
        int has_name = (keep & PPROF_KEEP_FUNCTIONS) != 0;

        assert_int_equal(f->name != 0, has_name);
        assert_int_equal(f->system_name != 0, has_name);
        assert_int_equal(f->file != 0, (keep & PPROF_KEEP_FILES) != 0);
    }
}

static void
expect_lines(const struct pprof_profile *p, uint32_t keep)
{
    size_t i, j;

    for (i = 0; i < pprof_location_count(p); i++) {
        const struct pprof_location *l = &pprof_locations(p)[i];

        if (!(keep & PPROF_KEEP_INLINES))
            assert_int_equal(l->n_lines, 1);
        assert_int_equal(l->address != 0, (keep & PPROF_KEEP_ADDRESSES) != 0);
        for (j = 0; j < l->n_lines; j++) {
            const struct pprof_line *line = &pprof_lines(p)[l->first_line + j];

            assert_int_equal(line->line != 0, (keep & PPROF_KEEP_LINES) != 0);
            if (!(keep & PPROF_KEEP_COLUMNS))
                assert_int_equal(line->column, 0);
        }
    }
}

static int64_t
total(const struct pprof_profile *p)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < pprof_sample_count(p); i++)
        sum += sample_of(p, i).values[0];
    return sum;
}

/* As many samples are left as differ in what is kept. */
static void
each_granularity_keeps_apart_what_it_should(void **state)
{
    static const struct {
        uint32_t keep;
        size_t n_rows;
    } cases[] = {
        {ALL, 6},
        {ALL & ~PPROF_KEEP_ADDRESSES, 5},
        {PPROF_KEEP_INLINES | PPROF_KEEP_FUNCTIONS | PPROF_KEEP_FILES |
             PPROF_KEEP_LINES,
         4},
        {PPROF_KEEP_INLINES | PPROF_KEEP_FUNCTIONS, 3},
        {PPROF_KEEP_INLINES | PPROF_KEEP_FILES, 3},
        {PPROF_KEEP_FUNCTIONS, 2},
        {PPROF_KEEP_FILES, 2},
        {PPROF_KEEP_LINES | PPROF_KEEP_FUNCTIONS, 4},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = make();

        assert_int_equal(pprof_aggregate(p, cases[i].keep, NULL), CPPROF_OK);
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        assert_int_equal(pprof_sample_count(p), 6);
        assert_int_equal(total(p), TOTAL);
        expect_flags(p, cases[i].keep);
        expect_functions(p, cases[i].keep);
        expect_lines(p, cases[i].keep);
        assert_int_equal(pprof_compact(p, NULL), CPPROF_OK);
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        assert_int_equal(pprof_sample_count(p), cases[i].n_rows);
        assert_int_equal(total(p), TOTAL);
        pprof_free(p);
    }
}

/* Each step forgets more, of the same profile. */
static void
steps_add_up(void **state)
{
    static const size_t n_rows[] = {6, 5, 4, 3, 2};
    static const uint32_t forget[] = {
        0, PPROF_KEEP_ADDRESSES, PPROF_KEEP_COLUMNS,
        PPROF_KEEP_LINES | PPROF_KEEP_FILES, PPROF_KEEP_INLINES};
    struct pprof_profile *p = make();
    uint32_t keep = ALL;
    size_t i;

    for (i = 0; i < 5; i++) {
        keep &= ~forget[i];
        assert_int_equal(pprof_aggregate(p, keep, NULL), CPPROF_OK);
        assert_int_equal(pprof_compact(p, NULL), CPPROF_OK);
        assert_int_equal(pprof_sample_count(p), n_rows[i]);
        assert_int_equal(total(p), TOTAL);
    }
    pprof_free(p);
}

/* Without lines there are no columns, either. */
static void
columns_go_with_lines(void **state)
{
    struct pprof_profile *p = make();

    pprof_aggregate(p, ALL & ~PPROF_KEEP_LINES, NULL);
    expect_lines(p, ALL & ~PPROF_KEEP_LINES & ~PPROF_KEEP_COLUMNS);
    pprof_free(p);
}

/* The last line is the function that the linker knows. */
static void
outermost_function_stays(void **state)
{
    struct pprof_profile *p = make();
    struct cpprof__buffer stack = {0};

    pprof_aggregate(p, ALL & ~PPROF_KEEP_INLINES, NULL);
    reference_put_stack(&stack, p, 1);
    assert_string_equal((char *)stack.data, "foo_caller:1@8192 main:1@4096 ");
    cpprof__buffer_free(&stack);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_granularity_keeps_apart_what_it_should),
        cmocka_unit_test(steps_add_up),
        cmocka_unit_test(columns_go_with_lines),
        cmocka_unit_test(outermost_function_stays),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
