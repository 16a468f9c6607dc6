/* SPDX-License-Identifier: MIT */
/*
 * Call-frame information, on sections made for each case: finding an FDE,
 * executing its program, and refusing what makes no sense.
 */
#include "cfi_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

/* Finding. */

/* Functions at 0, 64, 128, ... of 32 to 64 bytes each. */
static void
make_functions(const struct cie *cie, size_t n)
{
    size_t i;

    begin_section(&section);
    put_cie(&section, cie);
    for (i = 0; i < n; i++)
        put_fde(&section, CODE + 64 * i, i % 2 == 0 ? 64 : 32, NULL, 0);
}

static void
assert_functions_are_found(size_t n)
{
    struct cpprof__fde fde;
    size_t i;
    size_t at;

    for (i = 0; i < n; i++) {
        for (at = 0; at < 64; at++) {
            bool inside = at < (i % 2 == 0 ? 64u : 32u);

            assert_int_equal(finds(CODE + 64 * i + at, &fde), inside);
            if (inside)
                assert_int_equal(fde.start, CODE + 64 * i);
        }
    }
    assert_false(finds(CODE - 1, &fde));
    assert_false(finds(CODE + 64 * n, &fde));
    assert_false(finds(0, &fde));
    assert_false(finds(UINTPTR_MAX, &fde));
}

static void
every_pc_is_found_with_tables_of_any_encoding(void **state)
{
    static const uint8_t tables[] = {0x3b, 0x1b, 0x3c, 0x1c, 0x04, 0x00, 0x33};
    static const uint8_t counts[] = {0x03, 0x04, 0x02, 0x00, 0x01};
    size_t t;
    size_t c;
    size_t n;

    (void)state;
    for (t = 0; t < N(tables); t++) {
        for (c = 0; c < N(counts); c++) {
            for (n = 1; n <= 9; n += 4) {
                /* An unsigned datarel table reaches up only. */
                if (tables[t] == 0x33 && CODE < (uintptr_t)section.bytes)
                    continue;
                make_functions(&usual, n);
                put_header(&section, 0x1b, counts[c], tables[t]);
                assert_functions_are_found(n);
            }
        }
    }
}

static void
every_pc_is_found_without_a_table(void **state)
{
    static const uint8_t frames[] = {0x1b, 0x3b, 0x00, 0x04, 0x1c};
    size_t i;

    (void)state;
    for (i = 0; i < N(frames); i++) {
        make_functions(&usual, 7);
        put_header(&section, frames[i], 0xff, 0xff);
        assert_functions_are_found(7);
    }
}

static void
every_pc_is_found_with_fdes_of_any_encoding(void **state)
{
    static const uint8_t pointers[] = {0x00, 0x04, 0x1b, 0x3b, 0x1c, 0x3c};
    size_t i;

    (void)state;
    for (i = 0; i < N(pointers); i++) {
        struct cie cie = {USUAL_CIE};

        cie.pointers = pointers[i];
        make_functions(&cie, 5);
        put_header(&section, 0x1b, 0x03, 0x3b);
        assert_functions_are_found(5);
    }
}

static void
every_pc_is_found_with_cies_of_any_version(void **state)
{
    static const struct {
        uint8_t version;
        const char *augmentation;
        bool signal_frame;
    } cases[] = {
        {1, "", false},     {1, "zR", false},  {1, "zPLR", false},
        {1, "zRS", true},   {3, "zR", false},  {4, "zPLR", false},
        {1, "zRBG", false}, {1, "zRX", false}, {1, "zSR", true},
    };
    struct cpprof__fde fde;
    size_t i;

    (void)state;
    for (i = 0; i < N(cases); i++) {
        struct cie cie = {USUAL_CIE};

        cie.version = cases[i].version;
        cie.augmentation = cases[i].augmentation;
        make_functions(&cie, 5);
        put_header(&section, 0x1b, 0x03, 0x3b);
        assert_functions_are_found(5);
        assert_true(finds(CODE, &fde));
        assert_int_equal(fde.origin.signal_frame, cases[i].signal_frame);
        assert_int_equal(fde.origin.ra_column, RA_COLUMN);
    }
}

static void
unknown_cies_are_refused(void **state)
{
    struct cie cies[] = {{USUAL_CIE}, {USUAL_CIE}, {USUAL_CIE},
                         {USUAL_CIE}, {USUAL_CIE}, {USUAL_CIE}};
    struct cpprof__fde fde;
    size_t i;

    (void)state;
    cies[0].version = 2;
    cies[1].version = 5;
    cies[2].augmentation = "eh";
    cies[3].ra_column = CPPROF__RULE_FIRST + CPPROF__N_RULES;
    cies[4].ra_column = 200;
    cies[5].pointers = 0x80; /* indirect */
    for (i = 0; i < N(cies); i++) {
        make_section(&cies[i], NULL, 0);
        assert_false(finds(CODE, &fde));
    }
}

static void
unknown_headers_are_refused(void **state)
{
    struct cpprof__cfi cfi;
    struct cpprof__fde fde;
    uint32_t large = 0x10000000;

    (void)state;
    make_section(&usual, NULL, 0);
    assert_true(finds(CODE, &fde));
    section.bytes[0] = 2; /* version */
    assert_false(finds(CODE, &fde));
    make_section(&usual, NULL, 0);
    section.bytes[3] = 0x31; /* a table of LEB128: no width */
    section.bytes[1] = 0xff;
    assert_false(finds(CODE, &fde));
    make_section(&usual, NULL, 0);
    memcpy(section.bytes + 8, &large, sizeof large); /* count */
    assert_false(finds(CODE, &fde));
    make_section(&usual, NULL, 0);
    cfi = cfi_of(&section);
    cfi.hdr = NULL;
    assert_false(cpprof__cfi_find(&cfi, CODE, &fde));
    cfi.hdr = cfi.hi;
    assert_false(cpprof__cfi_find(&cfi, CODE, &fde));
    cfi.hdr = cfi.hi - 3;
    assert_false(cpprof__cfi_find(&cfi, CODE, &fde));
}

static void
records_of_64_bits_are_refused(void **state)
{
    struct cpprof__fde fde;

    (void)state;
    make_section(&usual, NULL, 0);
    memset(section.bytes + section.fdes[0], 0xff, 4);
    assert_false(finds(CODE, &fde));
}

/* The section ends anywhere, in front of memory that cannot be read. */
static void
truncated_sections_never_fault(void **state)
{
    static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2,    0x42, 0x0f,
                                      3,    0x77, 8,  6,    0x0a, 0x0b};
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t tables[] = {0x3b, 0xff, 0x1b};
    size_t t;
    size_t n;

    (void)state;
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    for (t = 0; t < N(tables); t++) {
        begin_section(&section);
        put_cie(&section, &usual);
        put_fde(&section, CODE, 256, program, sizeof program);
        put_header(&section, 0x1b, tables[t] == 0xff ? 0xff : 3, tables[t]);
        for (n = 0; n <= section.n; n++) {
            uint8_t *at = pages + 4096 - n;
            struct cpprof__cfi cfi = {
                .lo = at, .hi = at + n, .hdr = at, .view = through};
            struct cpprof__fde fde;
            struct cpprof__cfi_row row;

            if (through)
                through->window_n = 0;
            memcpy(at, section.bytes, n);
            /* Addresses in it are relative, so it also works from there. */
            if (cpprof__cfi_find(&cfi, CODE + 8, &fde))
                cpprof__cfi_run(&fde, CODE + 8, &row);
        }
    }
    munmap(pages, 8192);
}

/* Executing. */

#define RULE(kind, value) ((int32_t)((value)*8) | CPPROF__RULE_##kind)

struct expected {
    uintptr_t at; /* pc - CODE */
    int32_t cfa_reg;
    int32_t cfa_off;
    int32_t rule_a;
    int32_t rule_b;
};

static bool
run(uintptr_t pc, struct cpprof__cfi_row *row)
{
    struct cpprof__fde fde;

    assert_true(finds(pc, &fde));
    return cpprof__cfi_run(&fde, pc, row);
}

static void
assert_row(const struct expected *e)
{
    struct cpprof__cfi_row row;

    assert_true(run(CODE + e->at, &row));
    assert_int_equal(row.cfa_reg, e->cfa_reg);
    assert_int_equal(row.cfa_off, e->cfa_off);
    assert_int_equal(row.rules[A - CPPROF__RULE_FIRST], e->rule_a);
    assert_int_equal(row.rules[B - CPPROF__RULE_FIRST], e->rule_b);
}

#define ASSERT_ROWS(cie, program, ...)                                         \
    do {                                                                       \
        static const struct expected rows_[] = {__VA_ARGS__};                  \
        size_t i_;                                                             \
                                                                               \
        make_section(cie, program, sizeof(program));                           \
        for (i_ = 0; i_ < N(rows_); i_++)                                      \
            assert_row(&rows_[i_]);                                            \
    } while (0)

static const uint8_t cie_code[] = {0x0c, SP, 8, 0x80 | A, 2};
static const struct cie cie_with_code = {USUAL_CIE, .code = cie_code,
                                         .n_code = sizeof cie_code};

static void
locations_advance_by_every_instruction(void **state)
{
    static const uint8_t program[] = {
        0x41, 0x0e, 16,                       /* advance_loc 1 */
        0x02, 2,    0x0e, 24,                 /* advance_loc1 2: 3 */
        0x03, 4,    0,    0x0e, 32,           /* advance_loc2 4: 7 */
        0x04, 8,    0,    0,    0,  0x0e, 40, /* advance_loc4 8: 15 */
        0x1d, 16,   0,    0,    0,  0,    0,
        0,    0,    0x0e, 48, /* advance_loc8 16: 31 */
    };

    (void)state;
    ASSERT_ROWS(
        &cie_with_code, program, {0, SP, 8, RULE(AT_CFA, -16), 0},
        {1, SP, 16, RULE(AT_CFA, -16), 0}, {2, SP, 16, RULE(AT_CFA, -16), 0},
        {3, SP, 24, RULE(AT_CFA, -16), 0}, {6, SP, 24, RULE(AT_CFA, -16), 0},
        {7, SP, 32, RULE(AT_CFA, -16), 0}, {14, SP, 32, RULE(AT_CFA, -16), 0},
        {15, SP, 40, RULE(AT_CFA, -16), 0}, {30, SP, 40, RULE(AT_CFA, -16), 0},
        {31, SP, 48, RULE(AT_CFA, -16), 0},
        {255, SP, 48, RULE(AT_CFA, -16), 0});
}

static void
set_loc_sets_the_location(void **state)
{
    uint8_t program[11] = {0x01};
    uintptr_t at = CODE + 100;

    (void)state;
    memcpy(program + 1, &at, sizeof at);
    program[9] = 0x0e;
    program[10] = 64;
    ASSERT_ROWS(&cie_with_code, program, {99, SP, 8, RULE(AT_CFA, -16), 0},
                {100, SP, 64, RULE(AT_CFA, -16), 0});
}

static void
code_is_aligned_by_its_factor(void **state)
{
    static const uint8_t program[] = {0x41, 0x0e, 16, 0x02, 3, 0x0e, 24};
    struct cie cie = cie_with_code;

    (void)state;
    cie.code_align = 4;
    ASSERT_ROWS(&cie, program, {3, SP, 8, RULE(AT_CFA, -16), 0},
                {4, SP, 16, RULE(AT_CFA, -16), 0},
                {15, SP, 16, RULE(AT_CFA, -16), 0},
                {16, SP, 24, RULE(AT_CFA, -16), 0});
}

static void
cfa_is_defined_by_every_instruction(void **state)
{
    static const uint8_t program[] = {
        0x0c, A,    16,   0x41, /* def_cfa */
        0x0d, B,    0x41,       /* def_cfa_register */
        0x0e, 24,   0x41,       /* def_cfa_offset */
        0x12, A,    0x7c, 0x41, /* def_cfa_sf -4: 32 */
        0x13, 0x02, 0x41,       /* def_cfa_offset_sf 2: -16 */
    };

    (void)state;
    ASSERT_ROWS(&usual, program, {0, A, 16, 0, 0}, {1, B, 16, 0, 0},
                {2, B, 24, 0, 0}, {3, A, 32, 0, 0}, {4, A, -16, 0, 0});
}

static void
rules_are_made_by_every_instruction(void **state)
{
    static const uint8_t program[] = {
        0x80 | A, 2,    0x41,             /* offset */
        0x05,     B,    0x83, 0x01, 0x41, /* offset_extended 131 */
        0x07,     A,    0x08, B,    0x41, /* undefined, same_value */
        0x09,     A,    B,    0x11, B,
        0x7d,     0x41, /* register, offset_extended_sf -3 */
        0x14,     A,    3,    0x15, B,
        0x7d,     0x41,             /* val_offset, val_offset_sf */
        0xc0 | A, 0x06, B,    0x41, /* restore, restore_extended */
        0x2f,     A,    5,    0x2e, 77,
        0x2d,     0x2c, 0x41, /* negative offset, args_size,
                               * negate_ra_state, with pc */
    };

    (void)state;
    ASSERT_ROWS(&cie_with_code, program, {0, SP, 8, RULE(AT_CFA, -16), 0},
                {1, SP, 8, RULE(AT_CFA, -16), RULE(AT_CFA, -1048)},
                {2, SP, 8, RULE(UNDEFINED, 0), RULE(SAME, 0)},
                {3, SP, 8, RULE(REGISTER, B), RULE(AT_CFA, 24)},
                {4, SP, 8, RULE(CFA_PLUS, -24), RULE(CFA_PLUS, 24)},
                {5, SP, 8, RULE(AT_CFA, -16), 0},
                {6, SP, 8, RULE(AT_CFA, 40), 0});
}

/* As in glibc's _dl_runtime_resolve of aarch64, which a PLT leads to. */
static void
cfa_is_above_the_return_address_where_calls_push_none(void **state)
{
    static const uint8_t program[] = {
        0x80 | A, 2, 0x41, 0x11, RA_COLUMN, 0x7f, /* at the CFA + 8 */
    };

    (void)state;
#if CPPROF__REG_LINK >= 0
    ASSERT_ROWS(&cie_with_code, program, {0, SP, 8, RULE(AT_CFA, -16), 0},
                {1, SP, 24, RULE(AT_CFA, -32), 0});
#else
    ASSERT_ROWS(&cie_with_code, program, {0, SP, 8, RULE(AT_CFA, -16), 0},
                {1, SP, 8, RULE(AT_CFA, -16), 0});
#endif
}

static void
expressions_are_remembered_by_position(void **state)
{
    static const uint8_t program[] = {
        0x0f,     2,    0x70 + A, 8,    0x10, A, 3,
        0x70 + A, 0x80, 0x7f,     0x16, B,    1, 0x33,
    };
    struct cpprof__cfi_row row;
    struct cpprof__fde fde;
    int32_t offset;
    const uint8_t *at;

    (void)state;
    make_section(&usual, program, sizeof program);
    assert_true(finds(CODE, &fde));
    assert_true(cpprof__cfi_run(&fde, CODE, &row));
    assert_int_equal(row.cfa_reg, CPPROF__CFA_EXPRESSION);
    at = fde.origin.at + row.cfa_off;
    assert_memory_equal(at, program + 1, 3);
    assert_int_equal(row.rules[A - CPPROF__RULE_FIRST] & 7,
                     CPPROF__RULE_AT_EXPRESSION);
    assert_int_equal(row.rules[B - CPPROF__RULE_FIRST] & 7,
                     CPPROF__RULE_IS_EXPRESSION);
    assert_true(
        cpprof__cfi_is_breg(&fde.origin, row.cfa_off, A, false, &offset));
    assert_int_equal(offset, 8);
    assert_false(
        cpprof__cfi_is_breg(&fde.origin, row.cfa_off, B, false, &offset));
    assert_false(
        cpprof__cfi_is_breg(&fde.origin, row.cfa_off, A, true, &offset));
    assert_true(cpprof__cfi_is_breg(
        &fde.origin, row.rules[A - CPPROF__RULE_FIRST] >> CPPROF__RULE_BITS, A,
        false, &offset));
    assert_int_equal(offset, -128);
}

static void
remembered_rows_are_restored_in_order(void **state)
{
    static const uint8_t program[] = {
        0x0a, 0x0e,     16, 0x41,                 /* 0: 16, remembers 8 */
        0x0a, 0x0e,     24, 0x41,                 /* 1: 24, remembers 16 */
        0x0b, 0x41,                               /* 2: 16 */
        0x0b, 0x80 | B, 4,  0x41,                 /* 3: 8 */
        0x0a, 0x0e,     40, 0xc0 | A, 0x41, 0x0b, /* 4: 40, 5: 8 */
    };

    (void)state;
    ASSERT_ROWS(&cie_with_code, program, {0, SP, 16, RULE(AT_CFA, -16), 0},
                {1, SP, 24, RULE(AT_CFA, -16), 0},
                {2, SP, 16, RULE(AT_CFA, -16), 0},
                {3, SP, 8, RULE(AT_CFA, -16), RULE(AT_CFA, -32)},
                {4, SP, 40, RULE(AT_CFA, -16), RULE(AT_CFA, -32)},
                {5, SP, 8, RULE(AT_CFA, -16), RULE(AT_CFA, -32)});
}

/* A rule for a vector register, or one that is not there, changes nothing. */
static void
rules_of_other_registers_are_dropped(void **state)
{
    static const uint8_t program[] = {0x05, 72, 3, 0x07, 0xff,     0x7f,
                                      0x10, 50, 1, 0x33, 0x80 | B, 2};

    (void)state;
    ASSERT_ROWS(&usual, program, {0, SP, 0, 0, RULE(AT_CFA, -16)});
}

static const struct refused {
    const char *what;
    uint8_t code[16];
    size_t n;
} refused_programs[] = {
    {"unknown instruction", {0x3f}, 1},
    {"unknown instruction with operands", {0x1c, 1, 1}, 3},
    {"restore_state without remember_state", {0x0b}, 1},
    {"remember_state too often", {0x0a, 0x0a, 0x0a}, 3},
    {"CFA register out of range", {0x0c, 100, 8}, 3},
    {"CFA offset out of range", {0x0e, 0xff, 0xff, 0xff, 0xff, 0x7f}, 6},
    {"rule out of range", {0x80 | A, 0xff, 0xff, 0xff, 0xff, 0x7f}, 6},
    {"expression longer than the program", {0x0f, 0xff, 0x7f}, 3},
    {"offset after an expression", {0x0f, 1, 0x33, 0x0e, 16}, 5},
    {"sf offset after an expression", {0x0f, 1, 0x33, 0x13, 16}, 5},
    {"register after an expression", {0x0f, 1, 0x33, 0x0d, A}, 5},
    {"offset cut off", {0x41, 0x0e, 0x80}, 3},
};

static void
senseless_programs_are_refused(void **state)
{
    struct cpprof__cfi_row row;
    size_t i;

    (void)state;
    for (i = 0; i < N(refused_programs); i++) {
        const struct refused *r = &refused_programs[i];
        struct cpprof__fde fde;

        make_section(&usual, r->code, r->n);
        assert_true(finds(CODE + 8, &fde));
        fde.end = fde.code + r->n; /* without the padding */
        if (cpprof__cfi_run(&fde, CODE + 8, &row))
            printf("# not refused: %s\n", r->what);
        assert_false(cpprof__cfi_run(&fde, CODE + 8, &row));
    }
}

static void
restore_in_a_cie_is_refused(void **state)
{
    static const uint8_t program[] = {0xc0 | A};
    struct cie cie = {USUAL_CIE, .code = program, .n_code = 1};
    struct cpprof__cfi_row row;

    (void)state;
    make_section(&cie, NULL, 0);
    assert_false(run(CODE, &row));
}

/* What stands behind the pc is not executed, sense or not. */
static void
senseless_programs_behind_the_pc_are_not_seen(void **state)
{
    static const uint8_t program[] = {0x0e, 16, 0x50, 0x3f};
    struct cpprof__cfi_row row;

    (void)state;
    make_section(&usual, program, sizeof program);
    assert_true(run(CODE + 15, &row));
    assert_int_equal(row.cfa_off, 16);
    assert_false(run(CODE + 16, &row));
}

static void (*const all[])(void **state) = {
    every_pc_is_found_with_tables_of_any_encoding,
    every_pc_is_found_without_a_table,
    every_pc_is_found_with_fdes_of_any_encoding,
    every_pc_is_found_with_cies_of_any_version,
    unknown_cies_are_refused,
    unknown_headers_are_refused,
    records_of_64_bits_are_refused,
    truncated_sections_never_fault,
    locations_advance_by_every_instruction,
    set_loc_sets_the_location,
    code_is_aligned_by_its_factor,
    cfa_is_defined_by_every_instruction,
    rules_are_made_by_every_instruction,
    cfa_is_above_the_return_address_where_calls_push_none,
    expressions_are_remembered_by_position,
    remembered_rows_are_restored_in_order,
    rules_of_other_registers_are_dropped,
    senseless_programs_are_refused,
    restore_in_a_cie_is_refused,
    senseless_programs_behind_the_pc_are_not_seen,
};

static void
all_this_holds_of_copies(void **state)
{
    static struct cpprof__stack_view view;
    size_t i;

    through = &view;
    for (i = 0; i < N(all); i++)
        all[i](state);
    through = NULL;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pc_is_found_with_tables_of_any_encoding),
        cmocka_unit_test(every_pc_is_found_without_a_table),
        cmocka_unit_test(every_pc_is_found_with_fdes_of_any_encoding),
        cmocka_unit_test(every_pc_is_found_with_cies_of_any_version),
        cmocka_unit_test(unknown_cies_are_refused),
        cmocka_unit_test(unknown_headers_are_refused),
        cmocka_unit_test(records_of_64_bits_are_refused),
        cmocka_unit_test(truncated_sections_never_fault),
        cmocka_unit_test(locations_advance_by_every_instruction),
        cmocka_unit_test(set_loc_sets_the_location),
        cmocka_unit_test(code_is_aligned_by_its_factor),
        cmocka_unit_test(cfa_is_defined_by_every_instruction),
        cmocka_unit_test(rules_are_made_by_every_instruction),
        cmocka_unit_test(cfa_is_above_the_return_address_where_calls_push_none),
        cmocka_unit_test(expressions_are_remembered_by_position),
        cmocka_unit_test(remembered_rows_are_restored_in_order),
        cmocka_unit_test(rules_of_other_registers_are_dropped),
        cmocka_unit_test(senseless_programs_are_refused),
        cmocka_unit_test(restore_in_a_cie_is_refused),
        cmocka_unit_test(senseless_programs_behind_the_pc_are_not_seen),
        cmocka_unit_test(all_this_holds_of_copies),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
