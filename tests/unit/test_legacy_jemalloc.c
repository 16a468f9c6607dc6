/* SPDX-License-Identifier: MIT */
/* Heap dumps of jemalloc. */
#include "legacy_fixture.h"

#define LOCATIONS                                                              \
    "Locations\n"                                                              \
    "     1: 0x10 M=1 \n"                                                      \
    "     2: 0x20 M=1 \n"                                                      \
    "Mappings\n"                                                               \
    "1: 0x0/0xffffffffffffffff/0x0   \n"

static void
threads_are_left_to_their_sum(void **state)
{
    (void)state;
    assert_reads("heap_v2/1\n"
                 "  t*: 3: 30 [0: 0]\n"
                 "  t0: 1: 10 [0: 0]\n"
                 "  t1: 2: 20 [0: 0] worker\n"
                 "@ 0x11 0x21\n"
                 "  t*: 3: 30 [0: 0]\n"
                 "  t0: 1: 10 [0: 0]\n"
                 "  t1: 2: 20 [0: 0] worker\n",
                 "PeriodType: space bytes\nPeriod: 1\nSamples:\n"
                 "objects/count space/bytes\n"
                 "          3         30: 1 2 \n"
                 "                bytes:[10]\n" LOCATIONS);
}

static void
counts_ever_allocated_are_columns_when_there_are_any(void **state)
{
    (void)state;
    assert_reads("heap_v2/1\n"
                 "  t*: 1: 8 [3: 36]\n"
                 "@ 0x11 0x21\n"
                 "  t*: 1: 8 [3: 36]\n",
                 "PeriodType: space bytes\nPeriod: 1\nSamples:\n"
                 "alloc_objects/count alloc_space/bytes "
                 "inuse_objects/count inuse_space/bytes\n"
                 "          3         36          1          8: 1 2 \n"
                 "                bytes:[8]\n" LOCATIONS);
}

static void
what_was_sampled_is_scaled_up(void **state)
{
    (void)state;
    /* 1 / (1 - exp(-1)) = 1.58 times as many. */
    assert_reads("heap_v2/100\n"
                 "  t*: 100: 10000 [0: 0]\n"
                 "@ 0x11 0x21\n"
                 "  t*: 100: 10000 [0: 0]\n",
                 "PeriodType: space bytes\nPeriod: 100\nSamples:\n"
                 "objects/count space/bytes\n"
                 "        158      15819: 1 2 \n"
                 "                bytes:[100]\n" LOCATIONS);
}

static void
damaged_dump_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_reads("heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x11\n  t0: 1: 8 [0: 0]\n",
                 "error: parsing profile: malformed sample: "
                 "t0: 1: 8 [0: 0]");
    assert_reads("heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x11\n",
                 "error: parsing profile: malformed sample: @ 0x11");
    assert_reads("heap_v2/1\n  t*: 1: 8 [0: 0]\nnonsense\n",
                 "error: parsing profile: malformed sample: nonsense");
    assert_reads("heap_v2/1\n  t*: 1: 8\n",
                 "error: parsing profile: unrecognized profile format");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_left_to_their_sum),
        cmocka_unit_test(counts_ever_allocated_are_columns_when_there_are_any),
        cmocka_unit_test(what_was_sampled_is_scaled_up),
        cmocka_unit_test(damaged_dump_is_refused_with_its_line),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
