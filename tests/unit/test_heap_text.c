/* SPDX-License-Identifier: MIT */
/*
 * A heap's tables as text, to the letter, and as the reader understands it:
 * the same profile as the pprof file of the same tables.
 */
#include "heap_fixture.h"

#include "collect/encode/text_profile.h"
#include "views.h"

static size_t
length_of_line(const char *text)
{
    return strcspn(text, "\n");
}

/* Up to the statistics, which differ from run to run. */
static void
assert_records(char *text, const char *expected)
{
    char *end = strstr(text, "\n# runtime.MemStats\n");

    assert_non_null(end);
    *end = 0;
    assert_string_equal(text, expected);
    free(text);
}

static void
records_are_unscaled_sorted_and_aligned_as_in_go(void **state)
{
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10310, 0x1040f, 0x10010), 3, 1, 1024, 512);
    add_samples(&m, PCS(0x10110, 0x10320, 0x10010), 5, 4, 64, 8192.5);
    add_samples(&m, PCS(0x10320, 0x20010, 0x10010), 2, 2, 4096, 128.5);
    assert_records(written_text(&m, 0),
                   "heap profile: 7: 9472 [10: 11584] @ heap/1048576\n"
                   "2: 8192 [2: 8192] @ 0x10321 0x20011 0x10011\n"
                   "#\t0x10320\tgrow+0x20\t/src/a.c:32\n"
                   "#\t0x20010\n"
                   "#\t0x10010\tmain+0x10\t/src/a.c:16\n"
                   "\n"
                   "1: 1024 [3: 3072] @ 0x10311 0x10410 0x10011\n"
                   "#\t0x10310\tgrow+0x10\t\t\t\t\t/src/a.c:16\n"
                   "#\t0x1040f\tmake<std::pair<int, int> >(char const*)+0xf\t"
                   "/src/a.c:15\n"
                   "#\t0x10010\tmain+0x10\t\t\t\t\t/src/a.c:16\n"
                   "\n"
                   "4: 256 [5: 320] @ 0x10111 0x10321 0x10011\n"
                   "#\t0x10320\tgrow+0x20\t/src/a.c:32\n"
                   "#\t0x10010\tmain+0x10\t/src/a.c:16\n"
                   "\n");
    unmake(&m);
}

static void
the_form_of_2016_has_addresses_alone(void **state)
{
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10310, 0x1040f, 0x10010), 3, 1, 1024, 512);
    add_samples(&m, PCS(0x10320, 0x20010, 0x10010), 2, 2, 4096, 128.5);
    assert_records(written_text(&m, CPPROF_FLAG_LEGACY),
                   "heap profile: 3: 9216 [5: 11264] @ heap/1048576\n"
                   "2: 8192 [2: 8192] @ 0x10321 0x20011 0x10011\n"
                   "1: 1024 [3: 3072] @ 0x10311 0x10410 0x10011\n");
    unmake(&m);
}

static void
inlined_functions_have_lines_of_their_own(void **state)
{
    struct made m;

    make(&m);
    add_samples(&m, PCS(INLINED_PC), 1, 1, 64, 1);
    assert_records(written_text(&m, 0),
                   "heap profile: 1: 64 [1: 65] @ heap/1048576\n"
                   "1: 64 [1: 64] @ 0x10381\n"
                   "#\t0x10380\tpush+0x80\t/src/a.c:128\n"
                   "#\t0x10380\tgrow+0x80\t/src/a.c:128\n"
                   "\n");
    unmake(&m);
}

static void
hidden_frames_are_shown_when_there_are_no_others(void **state)
{
    struct made m;

    make(&m);
    add_samples(&m, PCS(0x10110, 0x10210), 1, 0, 64, 1);
    assert_records(written_text(&m, 0),
                   "heap profile: 0: 0 [1: 64] @ heap/1048576\n"
                   "0: 0 [1: 64] @ 0x10111 0x10211\n"
                   "#\t0x10110\tmalloc+0x10\t\t\t\t/src/a.c:16\n"
                   "#\t0x10210\toperator new(unsigned long)+0x10\t/src/a.c:16\n"
                   "\n");
    unmake(&m);
}

static void
empty_profile_still_has_four_columns(void **state)
{
    struct pprof_profile *p;
    struct sink s;
    struct made m;
    char *text;

    make(&m);
    text = written_text(&m, 0);
    assert_int_equal(
        strncmp(text, "heap profile: 0: 0 [0: 1] @ heap/1048576\n", 41), 0);
    memset(&s, 0, sizeof s);
    cpprof__buffer_append(&s.bytes, text, strlen(text));
    free(text);
    p = read_back(&s);
    assert_int_equal(pprof_sample_type_count(p), 4);
    pprof_free(p);
    unmake(&m);
}

static void
records_are_scaled_once_the_rate_has_changed(void **state)
{
    struct made m;

    make(&m);
    m.heap.head->n_rates = 1;
    m.heap.head->n_lost = 2;
    m.heap.head->lost_objects = FRACTION(50);
    m.heap.head->lost_bytes = FRACTION(4000);
    add_samples(&m, PCS(0x10010), 3, 1, 1024, 512);
    assert_records(written_text(&m, 0),
                   "heap profile: 512: 524288 [1586: 1576864] @ heap/2\n"
                   "512: 524288 [1536: 1572864] @ 0x10011\n"
                   "#\t0x10010\tmain+0x10\t/src/a.c:16\n"
                   "\n"
                   "0: 0 [50: 4000] @ 0x2\n"
                   "#\t0x1\t[lost samples]+0x0\t?:0\n"
                   "\n");
    unmake(&m);
}

/* The names and the order of Go's runtime, for whoever looks for one. */
static void
statistics_have_the_names_of_go(void **state)
{
    static const char *const names[] = {
        "Alloc",         "TotalAlloc", "Sys",          "Lookups",
        "Mallocs",       "Frees",      "HeapAlloc",    "HeapSys",
        "HeapIdle",      "HeapInuse",  "HeapReleased", "HeapObjects",
        "Stack",         "MSpan",      "MCache",       "BuckHashSys",
        "GCSys",         "OtherSys",   "NextGC",       "LastGC",
        "PauseNs",       "PauseEnd",   "NumGC",        "NumForcedGC",
        "GCCPUFraction", "DebugGC",    "MaxRSS",
    };
    struct made m;
    char *text, *at, expected[64];
    size_t i;

    make(&m);
    m.source.is_self = true;
    add_samples(&m, PCS(0x10010), 3, 1, 1024, 512);
    text = written_text(&m, 0);
    at = strstr(text, "\n\n\n# runtime.MemStats\n");
    assert_non_null(at);
    at += strlen("\n\n\n# runtime.MemStats\n");
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(expected, sizeof expected, "# %s = ", names[i]);
        if (strncmp(at, expected, strlen(expected)) != 0)
            fail_msg("%.*s instead of %s", (int)length_of_line(at), at,
                     expected);
        at += length_of_line(at) + 1;
    }
    assert_string_equal(at, "");
    assert_non_null(strstr(text, "# TotalAlloc = 1572864\n"));
    assert_non_null(strstr(text, "# HeapObjects = 512\n"));
    assert_non_null(strstr(text, "# DebugGC = false\n"));
    assert_null(strstr(text, "# MaxRSS = 0\n"));
    free(text);
    unmake(&m);
}

/* ---- read back ----------------------------------------------------------- */

/* Weights are kept in 1/1024ths. */
static bool
near(int64_t x, int64_t y)
{
    int64_t off = x > y ? x - y : y - x;

    return off <= 1 + x / 2048;
}

/* The sample of b that has the locations and the mean size of sample i of a. */
static struct pprof_sample
same_sample(const struct pprof_profile *a, size_t i,
            const struct pprof_profile *b)
{
    struct pprof_sample x = sample_of(a, i), y;
    size_t j, k;

    for (j = 0; j < pprof_sample_count(b); j++) {
        y = sample_of(b, j);
        if (x.n_locations != y.n_locations || x.n_labels != y.n_labels ||
            x.labels[0].num != y.labels[0].num)
            continue;
        for (k = 0; k < x.n_locations; k++)
            if (pprof_locations(a)[x.locations[k]].address !=
                pprof_locations(b)[y.locations[k]].address)
                break;
        if (k == x.n_locations)
            return y;
    }
    fail_msg("sample %zu is missing", i);
    return y;
}

static void
text_is_read_as_the_same_profile(void **state)
{
    static const double weights[] = {512.5, 8192.5, 128.5, 1.5819767};
    static const uint64_t sizes[] = {1024, 64, 4096, 524288};
    struct cpprof_heap_options options = {.debug = 1,
                                          .symbolize = CPPROF_SYMBOLIZE_NONE};
    struct pprof_profile *a, *b;
    struct made m;
    size_t i, k;

    make(&m);
    for (i = 0; i < 64; i++)
        add_samples(&m, PCS(0x10310 + 4 * i, 0x10010), 1 + i, i / 2,
                    sizes[i % 4], weights[i % 4]);
    b = written(&m, &options);
    options.debug = 0;
    a = written(&m, &options);
    assert_int_equal(pprof_sample_count(a), 64);
    assert_int_equal(pprof_sample_count(b), 64);
    assert_int_equal(info_of(b).period, 524288);
    for (i = 0; i < 64; i++) {
        struct pprof_sample x = sample_of(a, i);
        struct pprof_sample y = same_sample(a, i, b);

        for (k = 0; k < 4; k++)
            if (!near(x.values[k], y.values[k]))
                fail_msg("value %zu: %lld, %lld", k, (long long)x.values[k],
                         (long long)y.values[k]);
    }
    pprof_free(a);
    pprof_free(b);
    unmake(&m);
}

static void
lost_samples_are_read_as_their_weight(void **state)
{
    struct cpprof_heap_options options = {.debug = 1};
    struct pprof_sample s;
    struct pprof_profile *p;
    struct made m;

    make(&m);
    m.heap.head->n_lost = 5;
    m.heap.head->lost_objects = FRACTION(5);
    m.heap.head->lost_bytes = FRACTION(5000000);
    p = written(&m, &options);
    s = sample_of(p, 0);
    if (s.values[1] < 4999990 || s.values[1] > 5000010)
        fail_msg("%lld", (long long)s.values[1]);
    pprof_free(p);
    unmake(&m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_unscaled_sorted_and_aligned_as_in_go),
        cmocka_unit_test(the_form_of_2016_has_addresses_alone),
        cmocka_unit_test(inlined_functions_have_lines_of_their_own),
        cmocka_unit_test(hidden_frames_are_shown_when_there_are_no_others),
        cmocka_unit_test(empty_profile_still_has_four_columns),
        cmocka_unit_test(records_are_scaled_once_the_rate_has_changed),
        cmocka_unit_test(statistics_have_the_names_of_go),
        cmocka_unit_test(text_is_read_as_the_same_profile),
        cmocka_unit_test(lost_samples_are_read_as_their_weight),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
