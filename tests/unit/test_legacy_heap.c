/* SPDX-License-Identifier: MIT */
/* Heap, growth and fragmentation profiles as text. */
#include "legacy_fixture.h"
#include "profile/legacy/rows.h"

static void
heap_v2_prints_as_reference_does(void **state)
{
    (void)state;
    assert_golden("cppbench.heap");
}

/* ------------------------------------------------------------ header ---- */

#define HEADER(counts, kind) "heap profile: " counts " @ " kind "\n"
#define TWO_COLUMNS          "1: 2 [1: 2]"
#define FOUR_COLUMNS         "1: 2 [3: 4]"
#define ROW                  " 1: 8 [ 3: 36] @ 0x11 0x21\n"
#define LOCATIONS                                                              \
    "Locations\n"                                                              \
    "     1: 0x10 M=1 \n"                                                      \
    "     2: 0x20 M=1 \n"                                                      \
    "Mappings\n"                                                               \
    "1: 0x0/0xffffffffffffffff/0x0   \n"

/* What is never scaled, so that only the header decides. */
static void
assert_header(const char *header, const char *period, bool has_alloc)
{
    char text[300], want[600];

    snprintf(text, sizeof text, "%s" ROW, header);
    snprintf(want, sizeof want,
             "PeriodType: space bytes\nPeriod: %s\nSamples:\n%s"
             "                bytes:[8]\n" LOCATIONS,
             period,
             has_alloc ? "alloc_objects/count alloc_space/bytes "
                         "inuse_objects/count inuse_space/bytes\n"
                         "          3         36          1          8: 1 2 \n"
                       : "objects/count space/bytes\n"
                         "          1          8: 1 2 \n");
    assert_reads(text, want);
}

static void
header_tells_period_and_columns(void **state)
{
    (void)state;
    assert_header(HEADER(TWO_COLUMNS, "heapprofile"), "1", false);
    assert_header(HEADER(FOUR_COLUMNS, "heapprofile"), "1", true);
    assert_header(HEADER("1: 2 [1: 4]", "heapprofile"), "1", true);
    assert_header(HEADER("1: 2 [0: 0]", "heapprofile"), "1", false);
    assert_header(HEADER("1: 2 [01: 2]", "heapprofile"), "1", true);
    assert_header(HEADER(TWO_COLUMNS, "heap/2"), "1", false);
    assert_header(HEADER(TWO_COLUMNS, "heap/3"), "1", false);
    assert_header(HEADER(TWO_COLUMNS, "heap"), "0", false);
    assert_header(HEADER(TWO_COLUMNS, "heap_v2/1"), "1", false);
    assert_header(HEADER(TWO_COLUMNS, "heapz_v2/1"), "1", false);
    assert_header(HEADER(FOUR_COLUMNS, "growthz"), "1", false);
    assert_header(HEADER(FOUR_COLUMNS, "growth"), "1", false);
    assert_header(HEADER(FOUR_COLUMNS, "fragmentationz"), "1", false);
}

static void
header_may_stand_anywhere_in_the_first_line(void **state)
{
    (void)state;
    assert_header("I0101 heap profile: x heap profile:1:2[1:2]@heap_v2/1 x\n",
                  "1", false);
}

static void
other_first_line_is_not_recognized(void **state)
{
    static const char *const lines[] = {
        "",
        "\n" HEADER(TWO_COLUMNS, "heapprofile"),
        "# \n" HEADER(TWO_COLUMNS, "heapprofile"),
        HEADER(TWO_COLUMNS, "heapz"),
        HEADER(TWO_COLUMNS, "heap_v3/1"),
        HEADER(TWO_COLUMNS, "heap_v2/99999999999999999999"),
        HEADER(TWO_COLUMNS, "malloc"),
        HEADER("-1: 2 [1: 2]", "heapprofile"),
        HEADER("1: -2 [1: 2]", "heapprofile"),
        HEADER("1: 2 [1: 2", "heapprofile"),
        "heap profile: 1: 2 [1: 2]@ growthz\n",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        bool recognized = true;

        assert_int_equal(legacy_read(cpprof__read_heap, lines[i],
                                     strlen(lines[i]), &recognized),
                         CPPROF_OK);
        assert_false(recognized);
    }
}

/* -------------------------------------------------------------- rows ---- */

static void
rows_are_scaled_by_their_mean_size(void **state)
{
    (void)state;
    assert_reads(HEADER("9: 9 [9: 9]",
                        "heap/1048576") "# comment\n\n"
                                        "2: 2048 [2: 2048] @ 0x11 0x21\r\n"
                                        "1: 5000000 [1: 5000000] @ 0x11\n"
                                        "0: 0 [0: 0] @ 0x11\n"
                                        "3: 0 [3: 0] @ 0x11\n"
                                        "--- Memory map: ---\n"
                                        "  00000000-00001000: /bin/demo\n",
                 "PeriodType: space bytes\n"
                 "Period: 524288\n"
                 "Samples:\n"
                 "objects/count space/bytes\n"
                 "       1025    1049600: 1 2 \n"
                 "                bytes:[1024]\n"
                 "          1    5000360: 1 \n"
                 "                bytes:[5000000]\n"
                 "          0          0: 1 \n"
                 "                bytes:[0]\n"
                 "          0          0: 1 \n"
                 "                bytes:[0]\n"
                 "Locations\n"
                 "     1: 0x10 M=1 \n"
                 "     2: 0x20 M=1 \n"
                 "Mappings\n"
                 "1: 0x0/0x1000/0x0 /bin/demo  \n");
}

static void
numbers_in_use_may_be_negative(void **state)
{
    (void)state;
    assert_reads(
        HEADER(FOUR_COLUMNS,
               "heapprofile") "-2: -64 [4: 128] @ 0x11\n"
                              "-1: -9223372036854775808 [4: 128] @ 0x11\n",
        "PeriodType: space bytes\n"
        "Period: 1\n"
        "Samples:\n"
        "alloc_objects/count alloc_space/bytes "
        "inuse_objects/count inuse_space/bytes\n"
        "          4        128         -2        -64: 1 \n"
        "                bytes:[32]\n"
        "          4        128         -1 -9223372036854775808: 1 \n"
        "                bytes:[-9223372036854775808]\n"
        "Locations\n"
        "     1: 0x10 M=1 \n"
        "Mappings\n"
        "1: 0x0/0xffffffffffffffff/0x0   \n");
}

/* What gperftools' own pprof reads and the reference does not. */
static void
addresses_without_0x_are_read(void **state)
{
    (void)state;
    assert_reads(
        HEADER(TWO_COLUMNS, "heapprofile") "1: 8 [1: 8] @ 11 00000021\n",
        "PeriodType: space bytes\n"
        "Period: 1\n"
        "Samples:\n"
        "objects/count space/bytes\n"
        "          1          8: 1 2 \n"
        "                bytes:[8]\n" LOCATIONS);
    assert_reads(HEADER(TWO_COLUMNS,
                        "heapprofile") "1: 8 [1: 8] @ 11 12345678901234567\n",
                 "error: parsing profile: malformed sample: 1: 8 [1: 8] @ 11 "
                 "12345678901234567: failed to parse as hex 64-bit number: "
                 "12345678901234567");
}

static void
malformed_rows_fail_with_the_words_of_the_reference(void **state)
{
    static const struct {
        const char *row, *error;
    } cases[] = {
        {"hello", "unexpected number of sample values: got 0, want 6"},
        {"1: 2 [3: 4]", "unexpected number of sample values: got 0, want 6"},
        {"1: 2 [-3: 4] @", "unexpected number of sample values: got 0, want 6"},
        {"0: 5 [1: 2] @ 0x1", "inuse count was 0 but inuse bytes was 5"},
        {"0: 5 [0: 7] @", "allocation count was 0 but allocation bytes was 7"},
        {"99999999999999999999: 5 [1: 2] @",
         "malformed sample: 99999999999999999999: 5 [1: 2] @: "
         "strconv.ParseInt: parsing \"99999999999999999999\": value out of "
         "range"},
        {"1: 5 [1: 2] @ 0x1 0x11111222223333344",
         "malformed sample: 1: 5 [1: 2] @ 0x1 0x11111222223333344: failed to "
         "parse as hex 64-bit number: 0x11111222223333344"},
    };
    char text[200], want[300];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%s%s\n",
                 HEADER(FOUR_COLUMNS, "heapprofile"), cases[i].row);
        snprintf(want, sizeof want, "error: parsing profile: %s",
                 cases[i].error);
        assert_reads(text, want);
    }
}

static void
failure_tells_where(void **state)
{
    static const char text[] = HEADER(TWO_COLUMNS, "heapprofile") ROW "x\n";
    struct pprof_profile *p;
    struct cpprof_error error;

    (void)state;
    assert_int_equal(pprof_read_data(text, sizeof text - 1, NULL, &p, &error),
                     CPPROF_BAD_DATA);
    assert_int_equal(error.offset, sizeof text - 1 - 2);
}

/* ------------------------------------------------------------- scale ---- */

static void
assert_scaled(const int64_t in[3], const int64_t want[2])
{
    int64_t count = in[0], size = in[1];

    cpprof__scale_heap_sample(&count, &size, in[2]);
    assert_int_equal(count, want[0]);
    assert_int_equal(size, want[1]);
}

/* 1 / (1 - exp(-mean / rate)) by hand: mean = rate gives 1.58197670686933. */
static void
samples_are_scaled_by_their_probability(void **state)
{
    static const struct {
        int64_t in[3], want[2];
    } cases[] = {
        {{0, 100, 512}, {0, 0}},
        {{100, 0, 512}, {0, 0}},
        {{7, 700, 1}, {7, 700}},
        {{7, 700, 0}, {7, 700}},
        {{7, 700, -5}, {7, 700}},
        {{1000000, 512000000, 512}, {1581976, 809972073}},
        {{1, 1 << 30, 512}, {1, 1 << 30}},
        {{1, 1, INT64_MAX}, {INT64_MIN, INT64_MIN}},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_scaled(cases[i].in, cases[i].want);
}

/* -------------------------------------------------------- robustness ---- */

static const char whole[] = HEADER(
    FOUR_COLUMNS, "heap_v2/524288") "# comment\n" ROW
                                    "2: 4096 [ 9: 9999 ] @ 11 12\n 1: 1 [1: 1] "
                                    "@ 0x11 0xffffffffffffffff\n"
                                    "MAPPED_LIBRARIES:\n00000000-00001000 r-xp "
                                    "00000000 fc:00 1 /bin/demo\n";

static void
every_cut_is_safe(void **state)
{
    (void)state;
    assert_every_cut_is_safe(cpprof__read_heap, whole);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    assert_every_allocation_may_fail(cpprof__read_heap, whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_v2_prints_as_reference_does),
        cmocka_unit_test(header_tells_period_and_columns),
        cmocka_unit_test(header_may_stand_anywhere_in_the_first_line),
        cmocka_unit_test(other_first_line_is_not_recognized),
        cmocka_unit_test(rows_are_scaled_by_their_mean_size),
        cmocka_unit_test(numbers_in_use_may_be_negative),
        cmocka_unit_test(addresses_without_0x_are_read),
        cmocka_unit_test(malformed_rows_fail_with_the_words_of_the_reference),
        cmocka_unit_test(failure_tells_where),
        cmocka_unit_test(samples_are_scaled_by_their_probability),
        cmocka_unit_test(every_cut_is_safe),
        cmocka_unit_test(every_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
