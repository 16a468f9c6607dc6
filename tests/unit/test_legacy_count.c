/* SPDX-License-Identifier: MIT */
/* Go's count profiles as text. */
#include "legacy_fixture.h"

static void
threadcreate_prints_as_reference_does(void **state)
{
    (void)state;
    assert_golden("go.godoc.thread");
}

#define EMPTY(type)                                                            \
    "PeriodType: " type " count\nPeriod: 1\nSamples:\n" type "/count\n"        \
    "Locations\nMappings\n"

static void
name_may_be_anything_without_spaces(void **state)
{
    (void)state;
    assert_reads("# ignored comment\n\nthreadcreate profile: total 123\n",
                 EMPTY("threadcreate"));
    assert_reads("\n# ignored comment\ngoroutine profile: total 123456",
                 EMPTY("goroutine"));
    assert_reads("\nsub/dir-ect_o.ry profile: total 999\r\n",
                 EMPTY("sub/dir-ect_o.ry"));
}

static void
other_first_line_is_not_recognized(void **state)
{
    static const char *const lines[] = {
        "",
        "# goroutine profile: total 1\n",
        " goroutine profile: total 1\n",
        "go routine profile: total 1\n",
        "goroutine profile: total x\n",
        "goroutine profile: total 1 \n",
        "goroutine profile: total\n",
        " profile: total 1\n",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        bool recognized = true;

        assert_int_equal(legacy_read(cpprof__read_count, lines[i],
                                     strlen(lines[i]), &recognized),
                         CPPROF_OK);
        assert_false(recognized);
    }
}

static const char whole[] = "goroutine profile: total 12\n"
                            "4 @ 0x401001 0x402001\n"
                            "# labels: {\"key\":\"value\"}\n"
                            "#\t0x401000\tmain.main+0x1\t/src/main.go:60\n"
                            "\n"
                            "010 @ 0x0 0x402001\n"
                            "--- Memory map: ---\n"
                            "  00400000-00500000: /bin/demo\n";

/* A count is read as Go reads a number: 010 is eight. */
static void
stacks_hold_return_addresses(void **state)
{
    (void)state;
    assert_reads(whole, "PeriodType: goroutine count\n"
                        "Period: 1\n"
                        "Samples:\n"
                        "goroutine/count\n"
                        "          4: 1 2 \n"
                        "          8: 3 2 \n"
                        "Locations\n"
                        "     1: 0x401000 M=1 \n"
                        "     2: 0x402000 M=1 \n"
                        "     3: 0xffffffffffffffff M=2 \n"
                        "Mappings\n"
                        "1: 0x400000/0x500000/0x0 /bin/demo  \n"
                        "2: 0x0/0xffffffffffffffff/0x0   \n");
}

static void
malformed_rows_fail(void **state)
{
    static const char *const rows[] = {
        "5 @",
        "5 @ ",
        "5 @ 0x",
        "5 @ 0x1 ",
        "5 @  0x1",
        "5 @ 1",
        "5 @ 0xA",
        " 5 @ 0x1",
        "-5 @ 0x1",
        "09 @ 0x1",
        "99999999999999999999 @ 0x1",
        "5 @ 0x11111222223333344",
        "five",
    };
    char text[200];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "x profile: total 1\n%s\n", rows[i]);
        assert_reads(text, "error: parsing profile: malformed profile format");
    }
}

static void
every_cut_is_safe(void **state)
{
    (void)state;
    assert_every_cut_is_safe(cpprof__read_count, whole);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    assert_every_allocation_may_fail(cpprof__read_count, whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threadcreate_prints_as_reference_does),
        cmocka_unit_test(name_may_be_anything_without_spaces),
        cmocka_unit_test(other_first_line_is_not_recognized),
        cmocka_unit_test(stacks_hold_return_addresses),
        cmocka_unit_test(malformed_rows_fail),
        cmocka_unit_test(every_cut_is_safe),
        cmocka_unit_test(every_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
