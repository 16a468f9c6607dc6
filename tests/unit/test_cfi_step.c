/* SPDX-License-Identifier: MIT */
/*
 * Call-frame information: evaluating expressions, and applying the rules of a
 * row to a frame's registers.
 */
#include "cfi_fixture.h"
#include "collect/signal/unwind/stack_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Evaluating. */

static uintptr_t memory[8] = {0x1122334455667788, 0x99aabbccddeeff00};

struct evaluation {
    const char *what;
    uint8_t code[24];
    uint8_t n;
    bool refused;
    uintptr_t value;
};

static const struct evaluation evaluations[] = {
    {"lit", {0x30 + 17}, 1, false, 17},
    {"const1u", {0x08, 200}, 2, false, 200},
    {"const1s", {0x09, 200}, 2, false, (uintptr_t)-56},
    {"const2u", {0x0a, 0xff, 0xff}, 3, false, 65535},
    {"const2s", {0x0b, 0xff, 0xff}, 3, false, (uintptr_t)-1},
    {"const4u", {0x0c, 0, 0, 0, 0x80}, 5, false, 0x80000000},
    {"const4s", {0x0d, 0, 0, 0, 0x80}, 5, false, 0xffffffff80000000},
    {"const8u", {0x0e, 1, 2, 3, 4, 5, 6, 7, 8}, 9, false, 0x0807060504030201},
    {"const8s", {0x0f, 1, 0, 0, 0, 0, 0, 0, 0}, 9, false, 1},
    {"addr", {0x03, 9, 0, 0, 0, 0, 0, 0, 0}, 9, false, 9},
    {"constu", {0x10, 0x80, 0x01}, 3, false, 128},
    {"consts", {0x11, 0x80, 0x7f}, 3, false, (uintptr_t)-128},
    {"breg", {0x70 + A, 8, 0x06}, 3, false, 0x99aabbccddeeff00},
    {"bregx", {0x92, A, 0, 0x06}, 4, false, 0x1122334455667788},
    {"regx", {0x90, A, 0x06}, 3, false, 0x1122334455667788},
    {"reg", {0x50 + A, 0x06}, 2, false, 0x1122334455667788},
    {"deref_size 4", {0x70 + A, 0, 0x94, 4}, 4, false, 0x55667788},
    {"deref_size 1", {0x70 + A, 0, 0x94, 1}, 4, false, 0x88},
    {"dup", {0x33, 0x12, 0x22}, 3, false, 6},
    {"drop", {0x33, 0x34, 0x13}, 3, false, 3},
    {"over", {0x33, 0x34, 0x14}, 3, false, 3},
    {"pick", {0x33, 0x34, 0x35, 0x15, 2}, 5, false, 3},
    {"swap", {0x33, 0x39, 0x16, 0x1c}, 4, false, 6},
    {"rot", {0x31, 0x32, 0x34, 0x17, 0x24, 0x22}, 6, false, 4 + (1 << 2)},
    {"abs", {0x09, 0xfb, 0x19}, 3, false, 5},
    {"and", {0x3f, 0x36, 0x1a}, 3, false, 6},
    {"div", {0x09, 0xf8, 0x33, 0x1b}, 4, false, (uintptr_t)-2},
    {"minus", {0x33, 0x35, 0x1c}, 3, false, (uintptr_t)-2},
    {"mod", {0x3f, 0x34, 0x1d}, 3, false, 3},
    {"mul", {0x33, 0x35, 0x1e}, 3, false, 15},
    {"neg", {0x33, 0x1f}, 2, false, (uintptr_t)-3},
    {"not", {0x33, 0x20}, 2, false, (uintptr_t)-4},
    {"or", {0x33, 0x34, 0x21}, 3, false, 7},
    {"plus", {0x33, 0x34, 0x22}, 3, false, 7},
    {"plus_uconst", {0x33, 0x23, 0x80, 0x01}, 4, false, 131},
    {"shl", {0x33, 0x34, 0x24}, 3, false, 48},
    {"shl too far", {0x33, 0x08, 64, 0x24}, 4, false, 0},
    {"shr", {0x09, 0xff, 0x08, 60, 0x25}, 5, false, 15},
    {"shr too far", {0x09, 0xff, 0x08, 64, 0x25}, 5, false, 0},
    {"shra", {0x09, 0xf0, 0x32, 0x26}, 4, false, (uintptr_t)-4},
    {"shra too far", {0x09, 0xf0, 0x08, 99, 0x26}, 5, false, (uintptr_t)-1},
    {"xor", {0x33, 0x35, 0x27}, 3, false, 6},
    {"eq", {0x33, 0x33, 0x29}, 3, false, 1},
    {"ge", {0x09, 0xff, 0x33, 0x2a}, 4, false, 0},
    {"gt", {0x33, 0x09, 0xff, 0x2b}, 4, false, 1},
    {"le", {0x33, 0x33, 0x2c}, 3, false, 1},
    {"lt", {0x09, 0xff, 0x33, 0x2d}, 4, false, 1},
    {"ne", {0x33, 0x33, 0x2e}, 3, false, 0},
    {"nop", {0x33, 0x96}, 2, false, 3},
    {"skip", {0x33, 0x2f, 1, 0, 0x34, 0x96}, 6, false, 3},
    {"bra taken", {0x33, 0x31, 0x28, 1, 0, 0x34, 0x96}, 7, false, 3},
    {"bra not taken", {0x33, 0x30, 0x28, 1, 0, 0x34, 0x96}, 7, false, 4},
    {"loop that ends", {0x3a, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff}, 7, false, 0},
    {"smallest / -1",
     {0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b},
     12,
     false,
     0x8000000000000000},
    {"of a PLT",
     {0x70 + A, 8, 0x08, 0x1c, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
      0x70 + A, 0, 0x1c},
     14,
     false,
     16},

    {"empty", {0}, 0, true, 0},
    {"unknown operation", {0x97}, 1, true, 0},
    {"operation that cannot occur", {0x33, 0x9c}, 2, true, 0},
    {"pop of nothing", {0x22}, 1, true, 0},
    {"drop of nothing", {0x13}, 1, true, 0},
    {"unary of nothing", {0x1f}, 1, true, 0},
    {"pick of nothing", {0x33, 0x15, 1}, 3, true, 0},
    {"stack overflow",
     {0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31},
     9,
     true,
     0},
    {"division by zero", {0x33, 0x30, 0x1b}, 3, true, 0},
    {"modulo zero", {0x33, 0x30, 0x1d}, 3, true, 0},
    {"endless loop", {0x33, 0x2f, 0xfc, 0xff}, 4, true, 0},
    {"skip out of the front", {0x33, 0x2f, 0xfb, 0xff}, 4, true, 0},
    {"skip out of the end", {0x33, 0x2f, 1, 0}, 4, true, 0},
    {"deref of nothing", {0x30, 0x06}, 2, true, 0},
    {"deref_size 9", {0x70 + A, 0, 0x94, 9}, 4, true, 0},
    {"deref_size 0", {0x70 + A, 0, 0x94, 0}, 4, true, 0},
    {"register that is not known", {0x70 + B, 0}, 2, true, 0},
    {"register that is not there", {0x92, 0xff, 0x7f, 0}, 4, true, 0},
    {"operand cut off", {0x0e, 1, 2}, 3, true, 0},
};

static bool
evaluate(const struct evaluation *e, const uintptr_t *initial, uintptr_t *value)
{
    uint8_t bytes[32];
    struct cpprof__cfi_origin origin = {.at = bytes,
                                        .view = through,
                                        .n = (uint32_t)(e->n + 1),
                                        .ra_column = RA_COLUMN};
    struct cpprof__stack_view view = {0};
    struct cpprof__regs regs = {0};

    bytes[0] = e->n;
    memcpy(bytes + 1, e->code, e->n);
    view.lo = (uintptr_t)memory;
    view.hi = (uintptr_t)(memory + N(memory));
    regs.r[A] = (uintptr_t)memory;
    regs.known = 1ull << A;
    return cpprof__cfi_evaluate(&origin, 0, &regs, &view, initial, value);
}

static void
expressions_have_their_value(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N(evaluations); i++) {
        const struct evaluation *e = &evaluations[i];
        uintptr_t value = 4711;
        bool ok = evaluate(e, NULL, &value);

        if (ok == e->refused || (ok && value != e->value))
            printf("# %s: %d %lx\n", e->what, ok, value);
        assert_int_equal(ok, !e->refused);
        assert_int_equal(value, e->refused ? 4711 : e->value);
    }
}

static void
expressions_of_rules_begin_with_the_cfa(void **state)
{
    static const struct evaluation e = {"", {0x38, 0x1c}, 2, false, 0};
    uintptr_t cfa = 1000;
    uintptr_t value;

    (void)state;
    assert_true(evaluate(&e, &cfa, &value));
    assert_int_equal(value, 992);
}

/* Applying. */

static struct cpprof__regs
frame_regs(void)
{
    struct cpprof__regs regs = {0};
    size_t i;

    for (i = 0; i < CPPROF__N_REGS; i++)
        regs.r[i] = 100 + i;
    regs.sp = (uintptr_t)memory;
    regs.pc = CODE;
    regs.known = (1ull << CPPROF__N_REGS) - 1;
    return regs;
}

static bool
step(const void *program, size_t n, struct cpprof__regs *regs, bool *root)
{
    struct cpprof__stack_view view = {0};
    struct cpprof__cfi_row row;
    struct cpprof__fde fde;

    view.lo = (uintptr_t)memory;
    view.hi = (uintptr_t)(memory + N(memory));
    make_section(&usual, program, n);
    assert_true(finds(CODE, &fde));
    assert_true(cpprof__cfi_run(&fde, CODE, &row));
    return cpprof__cfi_step(&row, &fde.origin, regs, &view, root);
}

/* The return address at CFA - 8, whatever the architecture. */
#define RA_RULE 0x80 | RA_COLUMN, 1

static bool
knows(const struct cpprof__regs *regs, unsigned reg)
{
    return regs->known >> reg & 1;
}

static void
rules_are_applied(void **state)
{
    static const uint8_t program[] = {
        0x0c, SP,    32,    RA_RULE, 0x80 | A, 2, 0x14, B,    3,
        0x09, B + 1, B + 2, 0x16,    B + 3,    3, 0x23, 0x90, 0x01,
    };
    struct cpprof__regs regs = frame_regs();
    bool root;
    size_t i;

    (void)state;
    for (i = 0; i < N(memory); i++)
        memory[i] = 0x1000 * i;
    assert_true(step(program, sizeof program, &regs, &root));
    assert_false(root);
    assert_int_equal(regs.sp, (uintptr_t)memory + 32);
    assert_int_equal(regs.pc, 0x3000);
    assert_int_equal(regs.r[A], 0x2000);
    assert_int_equal(regs.r[B], (uintptr_t)memory + 8);
    assert_int_equal(regs.r[B + 1], 100 + B + 2);
    assert_int_equal(regs.r[B + 3], (uintptr_t)memory + 32 + 144);
    assert_true(knows(&regs, CPPROF__REG_FP)); /* kept by the callee */
    assert_false(knows(&regs, 0));
    assert_true(knows(&regs, CPPROF__REG_SP));
}

static void
registers_that_are_not_kept_are_lost(void **state)
{
    static const uint8_t program[] = {0x0c, SP, 32,   RA_RULE, 0x07, A,   0x09,
                                      B,    0,  0x10, B + 1,   1,    0x30};
    struct cpprof__regs regs = frame_regs();
    bool root;

    (void)state;
    regs.known &= ~1ull;
    assert_true(step(program, sizeof program, &regs, &root));
    assert_false(knows(&regs, A));     /* undefined */
    assert_false(knows(&regs, B));     /* in a register that is not known */
    assert_false(knows(&regs, B + 1)); /* saved where nothing can be read */
    assert_true(knows(&regs, B + 2));
}

/* Rules look at the frame's registers, not at what has been found already. */
static void
rules_never_see_the_callers_registers(void **state)
{
    static const uint8_t program[] = {0x0c,
                                      SP,
                                      32,
                                      RA_RULE,
                                      0x80 | A,
                                      2,
                                      0x80 | CPPROF__REG_FP,
                                      2,
                                      0x16,
                                      B,
                                      2,
                                      0x70 + A,
                                      0,
                                      0x16,
                                      B + 1,
                                      2,
                                      0x70 + SP,
                                      0,
                                      0x16,
                                      B + 2,
                                      2,
                                      0x70 + CPPROF__REG_FP,
                                      0};
    struct cpprof__regs regs = frame_regs();
    bool root;

    (void)state;
    memory[2] = 0x2000;
    assert_true(step(program, sizeof program, &regs, &root));
    assert_true(!knows(&regs, B) || regs.r[B] == 100 + A);
    assert_int_equal(regs.r[B + 1], (uintptr_t)memory);
    assert_true(knows(&regs, B + 1));
    /* What expressions do look at, fp and sp, is always to be had. */
    assert_int_equal(regs.r[B + 2], 100 + CPPROF__REG_FP);
    assert_true(knows(&regs, B + 2));
    assert_int_equal(regs.fp, 0x2000);
}

static void
undefined_return_address_is_the_root(void **state)
{
    static const uint8_t program[] = {0x07, RA_COLUMN};
    struct cpprof__regs regs = frame_regs();
    bool root = false;

    (void)state;
    assert_true(step(program, sizeof program, &regs, &root));
    assert_true(root);
    assert_int_equal(regs.sp, (uintptr_t)memory);
}

static void
unknown_cfa_is_refused(void **state)
{
    static const uint8_t program[] = {0x0c, A, 8, RA_RULE};
    struct cpprof__regs regs = frame_regs();
    bool root;

    (void)state;
    regs.known &= ~(1ull << A);
    assert_false(step(program, sizeof program, &regs, &root));
    regs = frame_regs(); /* known, but nothing is there */
    assert_false(step(program, sizeof program, &regs, &root));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_their_value),
        cmocka_unit_test(expressions_of_rules_begin_with_the_cfa),
        cmocka_unit_test(rules_are_applied),
        cmocka_unit_test(registers_that_are_not_kept_are_lost),
        cmocka_unit_test(rules_never_see_the_callers_registers),
        cmocka_unit_test(undefined_return_address_is_the_root),
        cmocka_unit_test(unknown_cfa_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
