/* SPDX-License-Identifier: MIT */
/* The text of a profile is what the reference's Profile.String() returns. */
#include "profile/model/make.h"
#include "profile/text/go_time.h"
#include "write_fixture.h"

#include <stdlib.h>
#include <time.h>

static void
use_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void
everything_is_printed(void **state)
{
    struct pprof_profile *p = make_odd();
    struct written w;

    use_zone("XST-5:30");
    w = must_write(p, PPROF_FORMAT_TEXT);
    assert_written_text(
        &w,
        "Comment: first comment\n"
        "Comment: second\n"
        "Comment: first comment\n"
        "Doc: https://example.com\n"
        "PeriodType: cpu nanoseconds\n"
        "Period: 10000000\n"
        "Time: 2017-07-14 08:10:00.123456789 +0530 XST\n"
        "Duration: 1m30\n"
        "Samples:\n"
        "samples/count cpu/nanoseconds[dflt]\n"
        "          1         -1: 18446744073709551615 3 562949953421312 7 \n"
        "                a:[x] b:[y w]\n"
        "                bytes:[5  0 kb] req:[7]\n"
        " -9223372036854775808 9223372036854775807: 7 3 \n"
        "          0          0: 268435456 \n"
        "                b:[y]\n"
        "          1         -1: \n"
        "                req:[7]\n"
        "Locations\n"
        "18446744073709551615: 0xffffffffffffffff M=1099511627776 f(int) "
        "f.cc:7:0 s=0(_Z1fi)\n"
        "     3: 0x0 \n"
        "     7: 0x8010 M=2 main :7:0 s=0\n"
        "268435456: 0x8020 M=2 main :7:0 s=0\n"
        "562949953421312: 0x0 M=1099511627776 [F] f(int) f.cc:-3:0 "
        "s=0(_Z1fi)\n"
        "             main :12:34 s=0\n"
        "Mappings\n"
        "1099511627776: 0x1000/0x5000/0x0 /bin/prog 1234 [FN]\n"
        "2: 0x8000/0xc000/0x0   [FN]\n");
    written_free(&w);
    pprof_free(p);
}

static void
empty_profile_prints_its_headings(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct written w = must_write(p, PPROF_FORMAT_TEXT);

    assert_written_text(&w, "PeriodType:  \nPeriod: 0\nSamples:\n\n"
                            "Locations\nMappings\n");
    written_free(&w);
    pprof_free(p);
}

/* Print a profile of these sample types only, and find `line` in it. */
static void
types_must_print(const char *types[], const char *line)
{
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    struct written w;
    char wanted[80];

    for (; *types; types += 2)
        cpprof__make_sample_type(&m, types[0], types[1]);
    w = must_write(m.p, PPROF_FORMAT_TEXT);
    cpprof__buffer_append(&w.bytes, "", 1);
    snprintf(wanted, sizeof wanted, "Samples:\n%s\nLocations\n", line);
    assert_non_null(strstr((const char *)w.bytes.data, wanted));
    written_free(&w);
    pprof_free(m.p);
    cpprof__maker_free(&m);
}

static void
space_around_the_sample_types_is_trimmed(void **state)
{
    types_must_print((const char *[]){"a", "b", "c", "d", NULL}, "a/b c/d");
    types_must_print((const char *[]){" \ta", "b\xc2\xa0\n", NULL}, "a/b");
    types_must_print((const char *[]){"\xe3\x80\x80z", "\xe2\x80\x8a", NULL},
                     "z/");
    types_must_print((const char *[]){"\xc3\x85", "\xc2", NULL},
                     "\xc3\x85/\xc2");
    /* No default: that is the type without a name. */
    types_must_print((const char *[]){"", "", "a", "", NULL}, "/[dflt] a/");
}

/* The reference sorts "key:[value]", not the key. */
static void
labels_are_sorted_as_they_are_printed(void **state)
{
    static const char *const keys[] = {"a", "a b", "a:", "a:[x]", "a:~", "aa"};
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    const int64_t value = 1;
    struct written w;
    size_t i;

    cpprof__make_sample_type(&m, "t", "u");
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        cpprof__make_label(&m, cpprof__make_text(&m, keys[i]),
                           cpprof__make_text(&m, "v"));
    cpprof__make_sample(&m, NULL, 0, &value);
    w = must_write(m.p, PPROF_FORMAT_TEXT);
    cpprof__buffer_append(&w.bytes, "", 1);
    assert_non_null(strstr((const char *)w.bytes.data,
                           "                a b:[v] a::[v] a:[v] a:[x]:[v] "
                           "a:~:[v] aa:[v]\n"));
    written_free(&w);
    pprof_free(m.p);
    cpprof__maker_free(&m);
}

/* More than a sink holds at once, and names with zero bytes in them. */
static void
large_text_is_written_in_pieces(void **state)
{
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    char *name = malloc(100000);
    struct written w;
    uint32_t i;

    memset(name, 'x', 100000);
    name[50000] = 0;
    for (i = 0; i < 10; i++) {
        uint32_t string = cpprof__make_string(&m, name, 100000 - i);

        cpprof__make_location(&m, PPROF_NONE, i,
                              cpprof__make_function(&m, string, string, 0), 1);
    }
    assert_false(m.failed);
    w = must_write(m.p, PPROF_FORMAT_TEXT);
    assert_in_range(w.bytes.n, 1000000, 1000500);
    assert_memory_equal(w.bytes.data + w.bytes.n - 9, "Mappings\n", 9);
    written_free(&w);
    pprof_free(m.p);
    cpprof__maker_free(&m);
    free(name);
}

/* -------------------------------------------------------------- time ---- */

static void
durations_are_those_of_go(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "1ns"},
        {-999, "-999ns"},
        {1100, "1.1\xc2\xb5s"},
        {999999, "999.999\xc2\xb5s"},
        {2200000, "2.2ms"},
        {1000000000, "1s"},
        {3300000000, "3.3s"},
        {60000000000, "1m0s"},
        {245000000000, "4m5s"},
        {245001000000, "4m5.001s"},
        {18367001000000, "5h6m7.001s"},
        {3600000000000, "1h0m0s"},
        {480000000000001, "133h20m0.000000001s"},
        {INT64_MAX, "2562047h47m16.854775807s"},
        {INT64_MIN, "-2562047h47m16.854775808s"},
    };
    char text[CPPROF__GO_TIME_MAX];
    size_t i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cpprof__go_duration(text, cases[i].ns);

        assert_int_equal(n, strlen(cases[i].text));
        text[n] = 0;
        assert_string_equal(text, cases[i].text);
    }
}

static void
must_print_time(const char *zone, int64_t ns, const char *expected)
{
    char text[CPPROF__GO_TIME_MAX];

    use_zone(zone);
    assert_int_equal(cpprof__go_time(text, ns), strlen(expected));
    assert_string_equal(text, expected);
}

static void
times_are_those_of_go(void **state)
{
    must_print_time("UTC", 1, "1970-01-01 00:00:00.000000001 +0000 UTC");
    must_print_time("UTC", 1000000000, "1970-01-01 00:00:01 +0000 UTC");
    must_print_time("UTC", -1, "1969-12-31 23:59:59.999999999 +0000 UTC");
    must_print_time("NST3:30", 1500000000500000000,
                    "2017-07-13 23:10:00.5 -0330 NST");
    must_print_time("UTC", INT64_MAX,
                    "2262-04-11 23:47:16.854775807 +0000 UTC");
    must_print_time("UTC", INT64_MIN,
                    "1677-09-21 00:12:43.145224192 +0000 UTC");
}

static void
duration_is_cut_to_four_characters(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make();
    struct written w;

    p->info.duration_ns = 1100;
    w = must_write(p, PPROF_FORMAT_TEXT);
    cpprof__buffer_append(&w.bytes, "", 1);
    assert_non_null(
        strstr((const char *)w.bytes.data, "\nDuration: 1.1\xc2\xb5\n"));
    written_free(&w);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_printed),
        cmocka_unit_test(empty_profile_prints_its_headings),
        cmocka_unit_test(space_around_the_sample_types_is_trimmed),
        cmocka_unit_test(labels_are_sorted_as_they_are_printed),
        cmocka_unit_test(large_text_is_written_in_pieces),
        cmocka_unit_test(durations_are_those_of_go),
        cmocka_unit_test(times_are_those_of_go),
        cmocka_unit_test(duration_is_cut_to_four_characters),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
