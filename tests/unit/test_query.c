/* SPDX-License-Identifier: MIT */
/* Questions about profiles, and several threads that ask at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "change_fixture.h"

#include <pthread.h>

/* ------------------------------------------------------ sample types ---- */

/* A profile with these sample types, parted by spaces. */
static struct pprof_profile *
typed(const char *types, const char *default_type)
{
    struct fixture f = {0};
    char *copy = strdup(types), *next = copy, *type;

    while ((type = strsep(&next, " ")))
        if (*type)
            fixture_value_type(&f, 1, type, "milliseconds");
    free(copy);
    cpprof__put_uint_opt(&f.bytes, 14, fixture_string(&f, default_type));
    cpprof__put_uint(&f.bytes, 9, 1);
    return fixture_must_read(&f);
}

static void
sample_types_are_found(void **state)
{
    static const struct {
        const char *types, *default_type, *name;
        size_t index;
    } cases[] = {
        {"zero default", "", "", 1},
        {"zero default", "", NULL, 1},
        {"zero default two", "default", "", 1},
        {"zero one default", "non-existent", "", 2},
        {"zero one two", "", "0", 0},
        {"zero default two", "default", "0", 0},
        {"zero one two", "", "+2", 2},
        {"zero one two three", "", "two", 2},
        {"zero default two", "default", "zero", 0},
        {"zero default", "", "inuse_zero", 0},
        {"space inuse_space", "", "inuse_space", 0},
        {"inuse_space space", "", "inuse_space", 0},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = typed(cases[i].types, cases[i].default_type);
        size_t index = 99;

        assert_int_equal(pprof_find_sample_type(p, cases[i].name, &index, NULL),
                         CPPROF_OK);
        assert_int_equal(index, cases[i].index);
        pprof_free(p);
    }
}

static void
sample_types_that_are_none_are_told(void **state)
{
    static const char *const cases[][3] = {
        {"zero default", "100", "sample_index 100 is outside the range [0..1]"},
        {"zero default", "-1", "sample_index -1 is outside the range [0..1]"},
        {"zero default", "does not exist",
         "sample_index \"does not exist\" must be one of: [zero default]"},
        {"zero", "\"\\\x01",
         "sample_index \"\\\"\\\\\\x01\" must be one of: "
         "[zero]"},
        {"zero", "99999999999999999999",
         "sample_index \"99999999999999999999\" must be one of: [zero]"},
        {"zero", "1x", "sample_index \"1x\" must be one of: [zero]"},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = typed(cases[i][0], "");
        struct cpprof_error error = {0};
        size_t index = 99;

        assert_int_equal(pprof_find_sample_type(p, cases[i][1], &index, &error),
                         CPPROF_INVALID);
        assert_string_equal(error.text, cases[i][2]);
        assert_int_equal(index, 99);
        pprof_free(p);
    }
}

static void
profile_without_sample_types_has_none(void **state)
{
    struct pprof_profile *p = typed("", "");
    struct cpprof_error error = {0};
    size_t index = 99;

    assert_int_equal(pprof_find_sample_type(p, "", &index, &error),
                     CPPROF_BAD_DATA);
    assert_string_equal(error.text, "profile has no samples");
    pprof_free(p);
}

/* ------------------------------------------------------------ labels ---- */

static void
text_labels_are_found(void **state)
{
    static const char *const labels[] = {
        NULL,
        "key=value",
        "key1=value2 key1=value1 key2=value1 key2=value2 key2=value2 "
        "key3=value1",
        "key=1value",
    };
    static const struct {
        size_t sample;
        const char *key, *value;
        int has;
    } cases[] = {
        {0, "key", "value", 0},   {1, "key", "value", 1},
        {1, "key1", "value1", 0}, {2, "key1", "value1", 1},
        {2, "key5", "value5", 0}, {2, "key3", "value2", 0},
        {3, "key", "value", 0},   {3, "key", "", 0},
    };
    struct pprof_profile *p = reference_labelled(labels, 4);
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(
            pprof_has_label(p, cases[i].sample, cases[i].key, cases[i].value),
            cases[i].has);
    pprof_free(p);
}

static void
samples_of_the_base_are_told(void **state)
{
    static const char *const labels[] = {
        NULL,
        "pprof::base=true",
        "key=value",
        "pprof::base=value2 pprof::base=true key2=true",
        "pprof::base=false key1=true",
    };
    static const int is_base[] = {0, 1, 0, 1, 0};
    struct pprof_profile *p = reference_labelled(labels, 5);
    size_t i;

    for (i = 0; i < 5; i++)
        assert_int_equal(pprof_is_diff_base(p, i), is_base[i]);
    pprof_free(p);
}

static void
units_of_labels_are_found(void **state)
{
    static const struct {
        const char *labels[2];
        const char *key, *unit;
        size_t n_others;
    } cases[] = {
        {{"key1=131072bytes key2=128kilobytes"}, "key1", "bytes", 0},
        {{"key1=131072bytes key2=128kilobytes"}, "key2", "kilobytes", 0},
        {{"key1=8"}, "key1", "key1", 0},
        {{"bytes=8"}, "bytes", "bytes", 0},
        {{"request=8"}, "request", "bytes", 0},
        {{"alignment=8"}, "alignment", "bytes", 0},
        {{"key1=8bytes key1=8kilobytes"}, "key1", "bytes", 1},
        {{"key1=8bytes key1=8megabytes key1=8kilobytes"}, "key1", "bytes", 2},
        {{"key1=8bytes", "key1=8kilobytes"}, "key1", "bytes", 1},
        {{"key1=8kilobytes", "key1=9kilobytes"}, "key1", "kilobytes", 0},
        {{"key1=8", "key1=8kilobytes"}, "key1", "kilobytes", 0},
        {{"alignment=8seconds request=8minutes"}, "request", "minutes", 0},
        {{"key1=8", "key2=text"}, "key2", NULL, 0},
        {{"key1=8"}, "none", NULL, 0},
    };
    size_t i, n;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pprof_profile *p = reference_labelled(cases[i].labels, 2);
        const char *unit = pprof_label_unit(p, cases[i].key, &n);

        if (cases[i].unit)
            assert_string_equal(unit, cases[i].unit);
        else
            assert_null(unit);
        assert_int_equal(n, cases[i].n_others);
        assert_ptr_equal(pprof_label_unit(p, cases[i].key, NULL), unit);
        pprof_free(p);
    }
}

/* A sample that a filter took away has no say any more. */
static void
units_are_those_of_samples_that_are_left(void **state)
{
    static const char *const labels[] = {"n=8bytes k=a", "n=8kilobytes k=b"};
    struct pprof_profile *p = reference_labelled(labels, 2);
    size_t n;

    assert_int_equal(pprof_filter_labels(p, "k=b", NULL, NULL, NULL),
                     CPPROF_OK);
    assert_string_equal(pprof_label_unit(p, "n", &n), "kilobytes");
    assert_int_equal(n, 0);
    assert_int_equal(pprof_filter_labels(p, "8kb", NULL, NULL, NULL),
                     CPPROF_OK);
    assert_int_equal(pprof_sample_count(p), 1);
    pprof_free(p);
}

/* ---------------------------------------------------------- mappings ---- */

static void
mappings_without_symbols_are_told(void **state)
{
    static const struct {
        const char *file;
        int is_unsymbolizable;
    } cases[] = {
        {"/usr/bin/prog", 0},
        {"[vdso]", 1},
        {"[vsyscall]", 1},
        {"/x/[heap]", 1},
        {"linux-vdso.so", 1},
        {"/lib/linux-vdso64.so.1", 1},
        {"/dev/dri/card0", 1},
        {"/dev/zero", 0},
        {"//anon", 1},
        {"//anonymous", 0},
        {"", 1},
        {"/memfd:jit (deleted)", 1},
        {"prog[1]", 0},
        {"/[x]/", 1},
        {"/", 0},
    };
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f = {0};
        struct pprof_profile *p;

        reference_mapping(&f, 1, 0x1000, 0x2000, cases[i].file);
        p = fixture_must_read(&f);
        assert_int_equal(pprof_is_unsymbolizable(p, 0),
                         cases[i].is_unsymbolizable);
        pprof_free(p);
    }
}

static void
locations_without_mapping_lack_nothing(void **state)
{
    struct pprof_profile *p = reference_profile(reference_values, 0);
    struct fixture f = {0};

    assert_true(pprof_has_functions(p));
    assert_true(pprof_has_file_lines(p));
    pprof_free(p);
    /* This one has functions and nothing else. */
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "");
    fixture_location(&f, 1, 1, 0x1010, 0);
    p = fixture_must_read(&f);
    assert_true(pprof_has_functions(p));
    assert_false(pprof_has_file_lines(p));
    pprof_free(p);
}

/* ----------------------------------------------------------- threads ---- */

static int
add_up(void *ctx, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    uint64_t *sum = ctx;
    size_t i;

    for (i = 0; i < n; i++)
        *sum = *sum * 31 + bytes[i];
    return 0;
}

/* A sum over all that can be asked. */
static uint64_t
ask_all(const struct pprof_profile *p)
{
    static const enum pprof_format formats[] = {
        PPROF_FORMAT_PLAIN, PPROF_FORMAT_GZIP, PPROF_FORMAT_TEXT};
    struct pprof_profile *copy = NULL;
    uint64_t sum = 0;
    size_t i, index = 0;

    for (i = 0; i < 3; i++) {
        struct cpprof_writer writer = {sizeof writer, add_up, NULL, &sum};

        if (pprof_write(p, &writer, formats[i], NULL, NULL))
            return 0;
    }
    if (pprof_copy(p, &copy, NULL) || pprof_check(copy, NULL))
        return 0;
    sum += pprof_sample_count(copy);
    pprof_free(copy);
    if (pprof_find_sample_type(p, "cpu", &index, NULL))
        return 0;
    return sum + index + (uint64_t)pprof_has_functions(p) +
           (uint64_t)pprof_has_label(p, 0, "key1", "tag1") +
           (pprof_label_unit(p, "none", NULL) != NULL);
}

static void *
ask_often(void *ctx)
{
    uint64_t expected = ask_all(ctx);
    int i;

    for (i = 0; i < 50; i++)
        if (!expected || ask_all(ctx) != expected)
            return NULL;
    return ctx;
}

static void
several_threads_may_read_one_profile(void **state)
{
    struct pprof_profile *p = reference_profile(reference_values, 1);
    pthread_t threads[4];
    void *result;
    size_t i;

    /* The first call allocates names of time zones, under a lock of libc's that
     * TSan cannot see. */
    assert_ptr_equal(ask_often(p), p);
    for (i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, p), 0);
    for (i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, p);
    }
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_types_are_found),
        cmocka_unit_test(sample_types_that_are_none_are_told),
        cmocka_unit_test(profile_without_sample_types_has_none),
        cmocka_unit_test(text_labels_are_found),
        cmocka_unit_test(samples_of_the_base_are_told),
        cmocka_unit_test(units_of_labels_are_found),
        cmocka_unit_test(units_are_those_of_samples_that_are_left),
        cmocka_unit_test(mappings_without_symbols_are_told),
        cmocka_unit_test(locations_without_mapping_lack_nothing),
        cmocka_unit_test(several_threads_may_read_one_profile),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
