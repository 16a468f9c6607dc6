/* SPDX-License-Identifier: MIT */
/*
 * The reference's tests of filters by name and of label keys: the same stacks,
 * the same expressions, the same results (profile/filter_test.go).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"
#include "views.h"

/* fun0 to fun10 in file0 to file10; the last one is in map1. */
static void
put_head(struct fixture *f)
{
    char name[16], file[16];
    uint64_t i;

    fixture_cpu(f);
    reference_mapping(f, 1, 0x10000, 0x40000, "map0");
    reference_mapping(f, 2, 0x50000, 0x70000, "map1");
    for (i = 0; i < 11; i++) {
        snprintf(name, sizeof name, "fun%d", (int)i);
        snprintf(file, sizeof file, "file%d", (int)i);
        fixture_function(f, i + 1, name, name, file);
    }
}

/* A location of n functions that follow each other. */
static void
put_location(struct fixture *f, uint64_t id, uint64_t mapping, uint64_t first,
             size_t n)
{
    struct reference_line lines[3];
    size_t i;

    for (i = 0; i < n; i++)
        lines[i] = (struct reference_line){first + i + 1, 1, 0};
    reference_location(f, id, mapping, id * 0x1000, lines, n);
}

static void
put_sample(struct fixture *f, const uint64_t *stack, size_t n, int64_t value)
{
    const int64_t values[] = {value, value};

    fixture_sample(f, stack, n, values, NULL);
}

static struct pprof_profile *
no_inlines(void)
{
    static const uint64_t stacks[][4] = {
        {1, 2, 3, 4}, {5, 6, 2, 7}, {8, 9}, {10, 5, 11, 8}};
    struct fixture f = {0};
    uint64_t i;

    put_head(&f);
    for (i = 0; i < 11; i++)
        put_location(&f, i + 1, i < 10 ? 1 : 2, i, 1);
    for (i = 0; i < 4; i++)
        put_sample(&f, stacks[i], i == 2 ? 2 : 4, (int64_t)i + 1);
    return fixture_must_read(&f);
}

static struct pprof_profile *
inlines(void)
{
    static const uint64_t first[] = {1, 2}, second[] = {3};
    struct fixture f = {0};

    put_head(&f);
    put_location(&f, 1, 1, 0, 2);
    put_location(&f, 2, 1, 2, 2);
    put_location(&f, 3, 1, 4, 3);
    put_sample(&f, first, 2, 1);
    put_sample(&f, second, 1, 2);
    return fixture_must_read(&f);
}

static struct pprof_profile *
empty_lines(void)
{
    static const uint64_t first[] = {1, 2}, second[] = {3};
    struct fixture f = {0};

    put_head(&f);
    put_location(&f, 1, 1, 0, 2);
    put_location(&f, 2, 1, 0, 0);
    put_location(&f, 3, 2, 0, 0);
    put_sample(&f, first, 2, 1);
    put_sample(&f, second, 1, 2);
    put_sample(&f, NULL, 0, 3);
    return fixture_must_read(&f);
}

#define ALL                                                                    \
    "fun0 fun1 fun2 fun3: 1\n"                                                 \
    "fun4 fun5 fun1 fun6: 2\n"                                                 \
    "fun7 fun8: 3\n"                                                           \
    "fun9 fun4 fun10 fun7: 4\n"

/* Each sample: "callee caller: value", a line. */
static void
expect_samples(struct pprof_profile *p, const char *what, const char *text)
{
    struct cpprof__buffer out = {0};
    size_t i, j, k;

    assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
    for (i = 0; i < pprof_sample_count(p); i++) {
        struct pprof_sample s = sample_of(p, i);
        const char *space = "";

        for (j = 0; j < s.n_locations; j++) {
            const struct pprof_location *l =
                &pprof_locations(p)[s.locations[j]];

            for (k = 0; k < l->n_lines; k++) {
                uint32_t f = pprof_lines(p)[l->first_line + k].function;

                cpprof__buffer_printf(
                    &out, "%s%s", space,
                    reference_text(p, pprof_functions(p)[f].name));
                space = " ";
            }
        }
        cpprof__buffer_printf(&out, ": %" PRId64 "\n", s.values[0]);
    }
    cpprof__buffer_append(&out, "", 1);
    if (strcmp((char *)out.data, text) != 0)
        fail_msg("%s: got\n%swant\n%s", what, out.data, text);
    cpprof__buffer_free(&out);
    pprof_free(p);
}

#define F PPROF_MATCHED_FOCUS
#define I PPROF_MATCHED_IGNORE
#define H PPROF_MATCHED_HIDE
#define S PPROF_MATCHED_SHOW

static void
names_are_filtered_as_in_the_reference(void **state)
{
    static const struct {
        const char *what;
        struct pprof_profile *(*make)(void);
        const char *focus, *ignore, *hide, *show;
        uint32_t matched;
        const char *samples;
    } cases[] = {
        {"empty filters keep all frames", no_inlines, "", NULL, "", NULL, F,
         ALL},
        {"focus with no matches", no_inlines, "unknown", NULL, NULL, NULL, 0,
         ""},
        {"focus matches function names", no_inlines, "fun1", NULL, NULL, NULL,
         F,
         "fun0 fun1 fun2 fun3: 1\nfun4 fun5 fun1 fun6: 2\n"
         "fun9 fun4 fun10 fun7: 4\n"},
        {"focus matches file names", no_inlines, "file1", NULL, NULL, NULL, F,
         "fun0 fun1 fun2 fun3: 1\nfun4 fun5 fun1 fun6: 2\n"
         "fun9 fun4 fun10 fun7: 4\n"},
        {"focus matches mapping names", no_inlines, "map1", NULL, NULL, NULL, F,
         "fun9 fun4 fun10 fun7: 4\n"},
        {"focus matches inline functions", inlines, "fun5", NULL, NULL, NULL, F,
         "fun4 fun5 fun6: 2\n"},
        {"ignore with no matches", no_inlines, NULL, "unknown", NULL, NULL, F,
         ALL},
        {"ignore matches function names", no_inlines, NULL, "fun1", NULL, NULL,
         F | I, "fun7 fun8: 3\n"},
        {"ignore matches file names", no_inlines, NULL, "file1", NULL, NULL,
         F | I, "fun7 fun8: 3\n"},
        {"ignore matches mapping names", no_inlines, NULL, "map1", NULL, NULL,
         F | I,
         "fun0 fun1 fun2 fun3: 1\nfun4 fun5 fun1 fun6: 2\nfun7 fun8: 3\n"},
        {"ignore matches inline functions", inlines, NULL, "fun5", NULL, NULL,
         F | I, "fun0 fun1 fun2 fun3: 1\n"},
        {"show with no matches", no_inlines, NULL, NULL, NULL, "unknown", F,
         ""},
        {"show matches function names", no_inlines, NULL, NULL, NULL,
         "fun1|fun2", F | S, "fun1 fun2: 1\nfun1: 2\nfun10: 4\n"},
        {"show matches file names", no_inlines, NULL, NULL, NULL, "file1|file3",
         F | S, "fun1 fun3: 1\nfun1: 2\nfun10: 4\n"},
        {"show matches mapping names", no_inlines, NULL, NULL, NULL, "map1",
         F | S, "fun10: 4\n"},
        {"show matches inline functions", inlines, NULL, NULL, NULL, "fun[03]",
         F | S, "fun0 fun3: 1\n"},
        {"show matches mapping and function", inlines, NULL, NULL, NULL,
         "map0|fun5", F | S, "fun0 fun1 fun2 fun3: 1\nfun4 fun5 fun6: 2\n"},
        {"hide with no matches", no_inlines, NULL, NULL, "unknown", NULL, F,
         ALL},
        {"hide matches function names", no_inlines, NULL, NULL, "fun1|fun2",
         NULL, F | H,
         "fun0 fun3: 1\nfun4 fun5 fun6: 2\nfun7 fun8: 3\nfun9 fun4 fun7: 4\n"},
        {"hide matches file names", no_inlines, NULL, NULL, "file1|file3", NULL,
         F | H,
         "fun0 fun2: 1\nfun4 fun5 fun6: 2\nfun7 fun8: 3\nfun9 fun4 fun7: 4\n"},
        {"hide matches mapping names", no_inlines, NULL, NULL, "map1", NULL,
         F | H,
         "fun0 fun1 fun2 fun3: 1\nfun4 fun5 fun1 fun6: 2\nfun7 fun8: 3\n"
         "fun9 fun4 fun7: 4\n"},
        {"hide matches inline functions", inlines, NULL, NULL, "fun[125]", NULL,
         F | H, "fun0 fun3: 1\nfun4 fun6: 2\n"},
        {"hide matches mapping and function", inlines, NULL, NULL, "map0|fun5",
         NULL, F | H, ""},
        {"both focus and ignore match", no_inlines, "fun1|fun7", "fun1", NULL,
         NULL, F | I, "fun7 fun8: 3\n"},
        {"both show and hide match", no_inlines, NULL, NULL, "fun10", "fun1",
         F | S | H, "fun1: 1\nfun1: 2\n"},
        /* Beyond the reference's own. */
        {"no filter keeps empty stacks", empty_lines, NULL, NULL, NULL, NULL, F,
         "fun0 fun1: 1\n: 2\n: 3\n"},
        {"any filter drops empty stacks", empty_lines, NULL, "unknown", NULL,
         NULL, F, "fun0 fun1: 1\n: 2\n"},
        {"show drops locations without lines", empty_lines, NULL, NULL, NULL,
         "fun", F | S, "fun0 fun1: 1\n"},
        {"all is ignored", no_inlines, NULL, "fun", NULL, NULL, I, ""},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_name_filter filter = {sizeof filter, cases[i].focus,
                                           cases[i].ignore, cases[i].hide,
                                           cases[i].show};
        struct pprof_profile *p = cases[i].make();
        uint32_t matched = 99;

        assert_int_equal(pprof_filter_names(p, &filter, &matched, NULL),
                         CPPROF_OK);
        if (matched != cases[i].matched)
            fail_msg("%s: matched %u", cases[i].what, (unsigned)matched);
        expect_samples(p, cases[i].what, cases[i].samples);
    }
}

static void
show_from_cuts_as_in_the_reference(void **state)
{
    static const struct {
        const char *what;
        struct pprof_profile *(*make)(void);
        const char *show_from;
        uint32_t matched;
        const char *samples;
    } cases[] = {
        {"none keeps all frames", no_inlines, NULL, 0, ALL},
        {"no matches drop all samples", no_inlines, "unknown", 0, ""},
        {"function names", no_inlines, "fun1", S,
         "fun0 fun1: 1\nfun4 fun5 fun1: 2\nfun9 fun4 fun10: 4\n"},
        {"file names", no_inlines, "file1", S,
         "fun0 fun1: 1\nfun4 fun5 fun1: 2\nfun9 fun4 fun10: 4\n"},
        {"mapping names", no_inlines, "map1", S, "fun9 fun4 fun10: 4\n"},
        {"highest of multiple matches", no_inlines, "fun[12]", S,
         "fun0 fun1 fun2: 1\nfun4 fun5 fun1: 2\nfun9 fun4 fun10: 4\n"},
        {"inline functions", inlines, "fun0|fun5", S,
         "fun0: 1\nfun4 fun5: 2\n"},
        {"highest of multiple inline matches", inlines, "fun[1245]", S,
         "fun0 fun1 fun2: 1\nfun4 fun5: 2\n"},
        {"mapping and function", inlines, "map0|fun5", S,
         "fun0 fun1 fun2 fun3: 1\nfun4 fun5 fun6: 2\n"},
        {"location with empty lines", empty_lines, "map1", S, ": 2\n"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = cases[i].make();
        uint32_t matched = 99;

        assert_int_equal(pprof_show_from(p, cases[i].show_from, &matched, NULL),
                         CPPROF_OK);
        if (matched != cases[i].matched)
            fail_msg("%s: matched %u", cases[i].what, (unsigned)matched);
        expect_samples(p, cases[i].what, cases[i].samples);
    }
}

/* How many of three label keys any sample still has. */
static size_t
n_keys(const struct pprof_profile *p)
{
    static const char *const keys[] = {"key1", "key2", "key3"};
    size_t count = 0, key, i, j;

    for (key = 0; key < 3; key++) {
        int found = 0;

        for (i = 0; i < pprof_sample_count(p); i++) {
            struct pprof_sample s = sample_of(p, i);

            for (j = 0; j < s.n_labels; j++)
                found |=
                    strcmp(reference_text(p, s.labels[j].key), keys[key]) == 0;
        }
        count += (size_t)found;
    }
    return count;
}

static void
label_keys_are_filtered_as_in_the_reference(void **state)
{
    static const struct {
        const char *show, *hide;
        uint32_t matched;
        size_t n_keys;
    } cases[] = {
        {NULL, NULL, S, 3},
        {"notfound", NULL, 0, 0},
        {"key1", NULL, S, 1},
        {NULL, "key[12]", S | H, 1},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = reference_profile(reference_values, 1);
        uint32_t matched = 99;

        assert_int_equal(pprof_filter_label_keys(p, cases[i].show,
                                                 cases[i].hide, &matched, NULL),
                         CPPROF_OK);
        assert_int_equal(matched, cases[i].matched);
        assert_int_equal(n_keys(p), cases[i].n_keys);
        assert_int_equal(pprof_sample_count(p), 5);
        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        pprof_free(p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_filtered_as_in_the_reference),
        cmocka_unit_test(show_from_cuts_as_in_the_reference),
        cmocka_unit_test(label_keys_are_filtered_as_in_the_reference),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
