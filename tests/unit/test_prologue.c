/* SPDX-License-Identifier: MIT */
/*
 * How much a function has on the stack, by its first instructions: those of
 * Debian's musl, and bytes of chance.
 */
#include "arch/regs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined __x86_64__

#define ALL UINTPTR_MAX

static void
check(const char *bytes, size_t n, uintptr_t done, uintptr_t size,
      uintptr_t fp_below)
{
    uint8_t code[CPPROF__PROLOGUE_MAX];
    struct cpprof__prologue p;

    memset(code, 0xe8, sizeof code); /* calls, which end it */
    memcpy(code, bytes, n);
    p = cpprof__read_prologue(code, done);
    assert_int_equal(p.bytes, size);
    assert_int_equal(p.fp_below, fp_below);
}

#define CHECK(bytes, ...) check(bytes, sizeof bytes - 1, __VA_ARGS__)

/* push r15; mov rdx, r15; push r14; mov rsi, r14; imul; push r13; push r12;
 * push rbp; push rbx; sub $0x348, rsp: qsort_r */
static const char sorts[] = "\x41\x57\x49\x89\xd7\x41\x56\x4d\x0f\xaf\xfe"
                            "\x41\x55\x41\x54\x55\x53"
                            "\x48\x81\xec\x48\x03\x00\x00\x55";

static void
pushes_and_room_are_counted(void **state)
{
    CHECK(sorts, ALL, 6 * 8 + 0x348, 5 * 8);
}

static void
what_is_not_done_yet_does_not_count(void **state)
{
    CHECK(sorts, 0, 0, 0);
    CHECK(sorts, 1, 8, 0);
    CHECK(sorts, 15, 4 * 8, 0);
    CHECK(sorts, 16, 5 * 8, 5 * 8);
    CHECK(sorts, 17, 6 * 8, 5 * 8);
    CHECK(sorts, 24, 6 * 8 + 0x348, 5 * 8);
}

static void
room_of_128_bytes_is_added_by_its_negative(void **state)
{
    CHECK("\x53\x48\x83\xc4\x80", ALL, 8 + 128, 0);
    CHECK("\x48\x83\xec\x18", ALL, 24, 0);
}

/* endbr64; test rsi, rsi; je; push rbp; mov fs:0x28, rax; lea 8(rsp), rbx;
 * mov $n, edi; push rbx */
static void
plain_instructions_are_passed_over(void **state)
{
    CHECK("\xf3\x0f\x1e\xfa\x48\x85\xf6\x74\x20\x55"
          "\x64\x48\x8b\x04\x25\x28\x00\x00\x00"
          "\x48\x8d\x5c\x24\x08\xbf\x01\x00\x00\x00\x53",
          ALL, 16, 8);
}

static void
bytes_of_chance_are_read_within_bounds(void **state)
{
    uint8_t *code = malloc(CPPROF__PROLOGUE_MAX);
    unsigned i, k;

    srand(1);
    for (i = 0; i < 200000; i++) {
        for (k = 0; k < CPPROF__PROLOGUE_MAX; k++)
            code[k] = (uint8_t)(rand() >> 8);
        cpprof__read_prologue(code, ALL);
    }
    free(code);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes_and_room_are_counted),
        cmocka_unit_test(what_is_not_done_yet_does_not_count),
        cmocka_unit_test(room_of_128_bytes_is_added_by_its_negative),
        cmocka_unit_test(plain_instructions_are_passed_over),
        cmocka_unit_test(bytes_of_chance_are_read_within_bounds),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int
main(void)
{
    return puts("1..0 # SKIP nothing is read of such code") < 0;
}
#endif
