/* SPDX-License-Identifier: MIT */
/* Contention profiles of C++ and Go as text. */
#include "legacy_fixture.h"

static void
contentionz_prints_as_reference_does(void **state)
{
    (void)state;
    assert_golden("cppbench.contention");
}

#define BEGIN(period) "PeriodType: contentions count\nPeriod: " period "\n"
#define SAMPLES       "Samples:\ncontentions/count delay/nanoseconds\n"
#define END                                                                    \
    "Locations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \nMappings\n"              \
    "1: 0x0/0xffffffffffffffff/0x0   \n"

static void
cycles_and_period_give_time_and_number(void **state)
{
    (void)state;
    assert_reads("--- mutex:\ncycles/second=2000000000\nsampling period=5\n"
                 "4000 2 @ 0x11 0x21\n",
                 BEGIN("5") SAMPLES "         10      10000: 1 2 \n" END);
    assert_reads("--- contention:\ncycles/second = 2000000000\n"
                 "4000 2 @ 0x11 0x21\n",
                 BEGIN("1") SAMPLES "          2       2000: 1 2 \n" END);
    assert_reads("--- contentionz 1 ---\nsampling period = 5\n"
                 "4000 2 @ 0x11 0x21\n",
                 BEGIN("5") SAMPLES "         10       4000: 1 2 \n" END);
    assert_reads("--- mutex:\ncycles/second=2000000000\nsampling period=-5\n"
                 "4000 2 @ 0x11 0x21\n",
                 BEGIN("-5") SAMPLES "          2       4000: 1 2 \n" END);
}

static void
comments_are_skipped(void **state)
{
    (void)state;
    assert_reads("--- mutex:\n# one\ncycles/second=0x77359400\n\n"
                 "sampling period=1\n#\t0x10\tsync.(*Mutex).Unlock+0x80\n"
                 "  4000 2 @ 0x11 0x21\r\n#\t0x10\tmain.main\n\n",
                 BEGIN("1") SAMPLES "          2       2000: 1 2 \n" END);
}

static void
attributes_are_understood(void **state)
{
    (void)state;
    assert_reads("--- contentionz 1 ---\nms since reset = 1_500\n"
                 "discarded samples = some\n",
                 BEGIN("1") "Duration: 1.5s\n" SAMPLES "Locations\nMappings\n");
}

static void
header_alone_is_an_empty_profile(void **state)
{
    (void)state;
    assert_reads("--- mutex:", BEGIN("1") SAMPLES "Locations\nMappings\n");
}

/* The first line that fits at some place counts, and two numbers need nothing
 * between them. */
static void
rows_are_searched_for(void **state)
{
    (void)state;
    assert_reads("--- mutex:\nx 7 5 6 @ 0x11\n12345 @ 0x21z 0x31\n"
                 "8 9 @\n---\n1 2 @ 0x1\n",
                 BEGIN("1") SAMPLES "          6          5: 1 \n"
                                    "          5       1234: 2 \n"
                                    "          9          8: \n" END);
}

static void
memory_map_gives_mappings(void **state)
{
    (void)state;
    assert_reads("--- contentionz 1 ---\n1 2 @ 0x11\n--- other: ---\nx\n"
                 "--- Memory map: ---\n  00000000-00001000: /bin/demo\n",
                 BEGIN("1") SAMPLES "          2          1: 1 \n"
                                    "Locations\n     1: 0x10 M=1 \nMappings\n"
                                    "1: 0x0/0x1000/0x0 /bin/demo  \n");
}

static void
other_text_is_not_recognized(void **state)
{
    static const char *const texts[] = {
        "",
        "--- contentionz",
        " --- mutex:\n",
        "--- channel:\n1 2 @ 0x1\n",
        "\n--- mutex:\n1 2 @ 0x1\n",
        "--- mutex:\nformat = java\n",
        "--- mutex:\nresolution = microseconds\n",
        "--- mutex:\nunknown = 1\n",
        "--- mutex:\ncycles/second = fast\n",
        "--- mutex:\nsampling period = 99999999999999999999\n",
        "--- mutex:\nms since reset = \n",
        "--- mutex:\n1 2 @ 0x1\n1 @ 0x1\n",
        "--- mutex:\nhello\n",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool recognized = true;

        assert_int_equal(legacy_read(cpprof__read_contention, texts[i],
                                     strlen(texts[i]), &recognized),
                         CPPROF_OK);
        assert_false(recognized);
    }
}

static void
numbers_out_of_range_fail(void **state)
{
    (void)state;
    assert_reads("--- mutex:\n99999999999999999999 2 @ 0x1\n",
                 "error: parsing profile: malformed sample: "
                 "99999999999999999999 2 @ 0x1: strconv.ParseInt: parsing "
                 "\"99999999999999999999\": value out of range");
    assert_reads("--- mutex:\n1 99999999999999999999 @ 0x1\n",
                 "error: parsing profile: malformed sample: "
                 "1 99999999999999999999 @ 0x1: strconv.ParseInt: parsing "
                 "\"99999999999999999999\": value out of range");
    assert_reads("--- mutex:\n1 2 @ 0x10000000000000000\n",
                 "error: parsing profile: malformed sample: "
                 "1 2 @ 0x10000000000000000: failed to parse as hex 64-bit "
                 "number: 0x10000000000000000");
}

/* What is too large for a number of nanoseconds becomes the smallest one. */
static void
products_wrap_as_they_do_in_go(void **state)
{
    (void)state;
    assert_reads("--- mutex:\nms since reset = 0\ncycles/second=1\n"
                 "sampling period=4611686018427387904\n"
                 "9223372036854775807 4 @\n",
                 BEGIN("4611686018427387904") SAMPLES
                 "          0 -9223372036854775808: \n"
                 "Locations\nMappings\n");
}

static const char whole[] =
    "--- contentionz 1 ---\ncycles/second = 3201000000\n"
    "sampling period = 100\nms since reset = 16502830\n"
    "discarded samples = 0\n# comment\n"
    "  19490304       27 @ 0xbccc97 0xc61202 0x42ed5f\n"
    "       768        1 @ 0xbccc97\n"
    "--- Memory map: ---\n  00400000-00fcb000: /bin/demo\n";

static void
every_cut_is_safe(void **state)
{
    (void)state;
    assert_every_cut_is_safe(cpprof__read_contention, whole);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    assert_every_allocation_may_fail(cpprof__read_contention, whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contentionz_prints_as_reference_does),
        cmocka_unit_test(cycles_and_period_give_time_and_number),
        cmocka_unit_test(comments_are_skipped),
        cmocka_unit_test(attributes_are_understood),
        cmocka_unit_test(header_alone_is_an_empty_profile),
        cmocka_unit_test(rows_are_searched_for),
        cmocka_unit_test(memory_map_gives_mappings),
        cmocka_unit_test(other_text_is_not_recognized),
        cmocka_unit_test(numbers_out_of_range_fail),
        cmocka_unit_test(products_wrap_as_they_do_in_go),
        cmocka_unit_test(every_cut_is_safe),
        cmocka_unit_test(every_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
