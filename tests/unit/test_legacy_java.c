/* SPDX-License-Identifier: MIT */
/* Java's heap and contention profiles, and its table of locations. */
#include "legacy_fixture.h"
#include "profile/legacy/maps.h"

static void
contention_prints_as_reference_does(void **state)
{
    (void)state;
    assert_golden("java.contention");
}

#define CONTENTION "--- contentionz 1 ---\nformat = java\n"
#define HEAP       "--- heapz 1 ---\nformat = java\nresolution = bytes\n"

static void
heap_is_scaled_by_512k(void **state)
{
    (void)state;
    assert_reads(HEAP "   2048     2 @ 0x1 0x2\n 4096 1 @ 0x3\n\n"
                      " 0x1 a.b.c (File.java:42)\n",
                 "PeriodType:  \n"
                 "Period: 0\n"
                 "Samples:\n"
                 "inuse_objects/count inuse_space/bytes\n"
                 "       1025    1049600: 1 2 \n"
                 "                bytes:[1024]\n"
                 "        128     526338: 3 \n"
                 "                bytes:[4096]\n"
                 "Locations\n"
                 "     1: 0x0 a.b.c File.java:42:0 s=0\n"
                 "     2: 0x0 M=1 \n"
                 "     3: 0x0 M=1 \n"
                 "Mappings\n"
                 "1: 0x0/0xffffffffffffffff/0x0   \n");
}

static void
contention_is_multiplied_by_the_period(void **state)
{
    (void)state;
    assert_reads(CONTENTION "resolution = microseconds\n\n"
                            "sampling period = 100\nms since reset = 90000\n"
                            "7 3 @ 0x1\n 0x1 GC\n",
                 "PeriodType: contentions count\n"
                 "Period: 100\n"
                 "Duration: 1m30\n"
                 "Samples:\n"
                 "contentions/count delay/microseconds\n"
                 "        300        700: 1 \n"
                 "Locations\n"
                 "     1: 0x0 GC :0:0 s=0\n"
                 "Mappings\n");
}

/* Names of functions as a table of locations gives them. */
static void
assert_location(const char *text, const char *want)
{
    char in[300], out[400];

    snprintf(in, sizeof in,
             CONTENTION "resolution = microseconds\n1 1 @ 0x1\n 0x01 %s\n",
             text);
    snprintf(out, sizeof out,
             "PeriodType:  \nPeriod: 0\nSamples:\n"
             "contentions/count delay/microseconds\n"
             "          1          1: 1 \n"
             "Locations\n     1: 0x0 %s s=0\nMappings\n",
             want);
    assert_reads(in, out);
}

static void
locations_are_functions_libraries_stubs_or_words(void **state)
{
    (void)state;
    assert_location("a.b.c (File.java:42)", "a.b.c File.java:42:0");
    assert_location("a.b.c\t(File.java:42)  ", "a.b.c File.java:42:0");
    assert_location("a.b.c (File.java:-2)", "a.b.c File.java:0:0");
    assert_location("a.b.c (x:99999999999999999999)", "a.b.c x:0:0");
    assert_location("a (b) (c:d:7)", "a (b) c:d:7:0");
    assert_location("a (b (c:7)", "a (b c:7:0");
    assert_location("a (:7)", "a :7:0:0");
    assert_location("a  (b:7)", "a  b:7:0");
    assert_location("lib (/usr/lib/x.so)", "lib x.so:0:0");
    assert_location("lib (/usr/lib///)", "lib lib:0:0");
    assert_location("lib (//)", "lib /:0:0");
    assert_location("lib ()", "lib .:0:0");
    assert_location("(File.java:42)", "(File.java:42) :0:0");
    assert_location("generated stub/JIT", "STUB :0:0");
    assert_location("VM", "VM :0:0");
}

static void
last_name_of_a_location_and_first_file_of_a_name_count(void **state)
{
    (void)state;
    assert_reads(CONTENTION "resolution = microseconds\n1 1 @ 0x1 0x2\n"
                            " 0x1 first (a:1)\n 0x2 f (b:2)\n 0x1 f (c:3)\n"
                            " 0x9 unused (d:4)\n not a location\n0xz x\n 0x1",
                 "PeriodType:  \nPeriod: 0\nSamples:\n"
                 "contentions/count delay/microseconds\n"
                 "          1          1: 1 2 \n"
                 "Locations\n"
                 "     1: 0x0 f b:3:0 s=0\n"
                 "     2: 0x0 f b:2:0 s=0\n"
                 "Mappings\n");
}

/* Its end is what makes a line an attribute or a row. */
static void
last_line_without_end_is_a_location_only(void **state)
{
    (void)state;
    assert_reads(CONTENTION "resolution = microseconds\n1 1 @ 0x1\n1 1 @ 0x2",
                 "PeriodType:  \nPeriod: 0\nSamples:\n"
                 "contentions/count delay/microseconds\n"
                 "          1          1: 1 \n"
                 "Locations\n     1: 0x0 M=1 \nMappings\n"
                 "1: 0x0/0xffffffffffffffff/0x0   \n");
    assert_reads(CONTENTION "resolution = microseconds\n1 1 @ 0x1\n0x1 f",
                 "PeriodType:  \nPeriod: 0\nSamples:\n"
                 "contentions/count delay/microseconds\n"
                 "          1          1: 1 \n"
                 "Locations\n     1: 0x0 f :0:0 s=0\nMappings\n");
}

static void
errors_have_the_words_of_the_reference(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {HEAP "5 0 @ 0x1\n",
         "parsing sample 5 0 @ 0x1: second value must be non-zero"},
        {HEAP "99999999999999999999 1 @ 0x1\n",
         "parsing sample 99999999999999999999 1 @ 0x1: strconv.ParseInt: "
         "parsing \"99999999999999999999\": value out of range"},
        {HEAP "1 08 @ 0x1\n", "parsing sample 1 08 @ 0x1: strconv.ParseInt: "
                              "parsing \"08\": invalid syntax"},
        {HEAP "1 1 @ 0x10000000000000000\n",
         "malformed sample: 1 1 @ 0x10000000000000000: failed to parse as hex "
         "64-bit number: 0x10000000000000000"},
        {HEAP "1 1 @ 0x1\n0x10000000000000000 f\n",
         "parsing sample 0x10000000000000000 f: strconv.ParseUint: parsing "
         "\"10000000000000000\": value out of range"},
        {CONTENTION "sampling period = x\n",
         "failed to parse attribute sampling period = x: strconv.ParseInt: "
         "parsing \"x\": invalid syntax"},
        {CONTENTION "ms since reset = 1x\n",
         "failed to parse attribute ms since reset = 1x: strconv.ParseInt: "
         "parsing \"1x\": invalid syntax"},
        {CONTENTION "1 1 @ 0x1\n", "missing sample type information"},
    };
    char want[300];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(want, sizeof want, "error: parsing profile: %s",
                 cases[i].error);
        assert_reads(cases[i].text, want);
    }
}

static void
other_text_is_not_recognized(void **state)
{
    static const char *const texts[] = {
        "",
        "--- heapz 1 ---",
        "--- heapz 2 ---\n",
        "--- contentionz 1\n",
        "--- heapz 1 ---\nformat = c\n",
        "--- heapz 1 ---\nsampling period = 5\n",
        "--- heapz 1 ---\nunknown = 5\n",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool recognized = true;

        assert_int_equal(legacy_read(cpprof__read_java, texts[i],
                                     strlen(texts[i]), &recognized),
                         CPPROF_OK);
        assert_false(recognized);
    }
}

static const char whole[] =
    CONTENTION "resolution = microseconds\nsampling period = 100\n"
               "ms since reset = 6019923\n"
               "            1     1 @ 0x00000003 0x00000004\n"
               "           14     1 @ 0x0000000d 0x00000003\n\n"
               "  0x00000003 com.example.f (source.java:3)\n"
               "  0x00000004 com.example.f (source.java:4)\n"
               "  0x0000000d lib (/usr/lib/x.so)\n";

static void
every_cut_is_safe(void **state)
{
    (void)state;
    assert_every_cut_is_safe(cpprof__read_java, whole);
    assert_every_cut_is_safe(cpprof__read_java, HEAP "5 2 @ 0x1\n 0x1 f\n");
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    assert_every_allocation_may_fail(cpprof__read_java, whole);
    assert_every_allocation_may_fail(cpprof__read_java,
                                     HEAP "5 2 @ 0x1\n 0x1 f\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contention_prints_as_reference_does),
        cmocka_unit_test(heap_is_scaled_by_512k),
        cmocka_unit_test(contention_is_multiplied_by_the_period),
        cmocka_unit_test(locations_are_functions_libraries_stubs_or_words),
        cmocka_unit_test(
            last_name_of_a_location_and_first_file_of_a_name_count),
        cmocka_unit_test(last_line_without_end_is_a_location_only),
        cmocka_unit_test(errors_have_the_words_of_the_reference),
        cmocka_unit_test(other_text_is_not_recognized),
        cmocka_unit_test(every_cut_is_safe),
        cmocka_unit_test(every_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
