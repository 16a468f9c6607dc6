/* SPDX-License-Identifier: MIT */
/* The stacks of all threads, as text. */
#include "legacy_fixture.h"

static void
threads_print_as_reference_does(void **state)
{
    (void)state;
    assert_golden("cppbench.thread");
}

static void
threads_without_stacks_print_as_reference_does(void **state)
{
    (void)state;
    assert_golden("cppbench.thread.none");
}

#define MAP        "--- Memory map: ---\n  00400000-00fcb000: /bin/demo\n"
#define THREAD(id) "--- Thread 7eFf0 (name: a/b/" id ") stack: ---\n"
#define HEAD       "PeriodType: thread count\nPeriod: 1\nSamples:\nthread/count\n"

static const char whole[] =
    "\n# comment\n--- threadz 1 ---\n\nany words\n"
    "--- Thread 7eFf0 (name: a/b/1) stack: ---\n"
    "  PC: 0x401001 0x402001: main 0x403001\n"
    "--- Thread 7eFf1 (name: a/b/2) stack: ---\n"
    "  [same as previous thread]\n"
    "--- Thread 7eFf2 (name: a/b/3) stack: ---\n"
    "  0x401001 0x401001\n\n    creator: 0x402001\n"
    "--- Memory map: ---\n  00400000-00fcb000: /bin/demo\n";

/* The leaf is exact, and there once; all others are return addresses. */
static void
equal_threads_are_counted_where_the_first_is(void **state)
{
    (void)state;
    assert_reads(whole, HEAD "          2: 1 2 3 \n"
                             "          1: 1 2 \n"
                             "Locations\n"
                             "     1: 0x401001 M=1 \n"
                             "     2: 0x402000 M=1 \n"
                             "     3: 0x403000 M=1 \n"
                             "     4: 0x401000 M=1 \n"
                             "Mappings\n"
                             "1: 0x400000/0xfcb000/0x0 /bin/demo  \n");
}

static void
header_of_a_thread_is_enough(void **state)
{
    (void)state;
    assert_reads(THREAD("1") " 0x401001\n" MAP,
                 HEAD "          1: 1 \nLocations\n     1: 0x401001 M=1 \n"
                      "Mappings\n"
                      "1: 0x400000/0xfcb000/0x0 /bin/demo  \n");
}

static void
thread_as_previous_without_one_is_nothing(void **state)
{
    (void)state;
    assert_reads(THREAD("1") " same as previous thread 0x401001\n" MAP,
                 HEAD "Locations\nMappings\n"
                      "1: 0x400000/0xfcb000/0x0 /bin/demo  \n");
}

static void
no_stack_trace_ends_the_threads(void **state)
{
    (void)state;
    assert_reads(THREAD("1") " 0x401001\n---- no stack trace for 5\n"
                             "anything 0x12\n" MAP,
                 HEAD "          1: 1 \nLocations\n     1: 0x401001 M=1 \n"
                      "Mappings\n"
                      "1: 0x400000/0xfcb000/0x0 /bin/demo  \n");
}

static void
address_of_more_than_64_bits_fails(void **state)
{
    (void)state;
    assert_reads("\n--- threadz 1 ---\n\n"
                 "--- Thread 7eff063d9940 (name: main/25376) stack: ---\n"
                 "  PC: 0x40b688 0x4d5f51 0x40be31 0x473add693e639c6f0\n" MAP,
                 "error: parsing profile: malformed sample: PC: 0x40b688 "
                 "0x4d5f51 0x40be31 0x473add693e639c6f0: failed to parse as "
                 "hex 64-bit number: 0x473add693e639c6f0");
}

static void
other_text_is_not_recognized(void **state)
{
    static const char *const texts[] = {
        "",
        "--- threadz ---\n" MAP,
        "--- threadz 1 ---\n",
        "--- threadz 1 ---\n--- something ---\n" MAP,
        "--- Thread (name: a/1) stack: ---\n" MAP,
        "--- Thread 1 (name: a1) stack: ---\n" MAP,
        "--- Thread 1 (name: a/) stack: ---\n" MAP,
        "--- Thread 1 (name: a/x1) stack: ---\n" MAP,
        THREAD("1") " 0x1\n",
        THREAD("1") " 0x1\n--- other ---\n" MAP,
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool recognized = true;

        assert_int_equal(legacy_read(cpprof__read_threads, texts[i],
                                     strlen(texts[i]), &recognized),
                         CPPROF_OK);
        assert_false(recognized);
    }
}

static void
every_cut_is_safe(void **state)
{
    (void)state;
    assert_every_cut_is_safe(cpprof__read_threads, whole);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    assert_every_allocation_may_fail(cpprof__read_threads, whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_print_as_reference_does),
        cmocka_unit_test(threads_without_stacks_print_as_reference_does),
        cmocka_unit_test(equal_threads_are_counted_where_the_first_is),
        cmocka_unit_test(header_of_a_thread_is_enough),
        cmocka_unit_test(thread_as_previous_without_one_is_nothing),
        cmocka_unit_test(no_stack_trace_ends_the_threads),
        cmocka_unit_test(address_of_more_than_64_bits_fails),
        cmocka_unit_test(other_text_is_not_recognized),
        cmocka_unit_test(every_cut_is_safe),
        cmocka_unit_test(every_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
