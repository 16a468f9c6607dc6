/* SPDX-License-Identifier: MIT */
/*
 * Executing: the CFA program of a CIE and then of its FDE, up to one program
 * counter, gives one row: how to find the caller's registers there.
 *
 * Invariants: every instruction takes at least one byte of the program, so it
 * ends; what does not fit a rule or the stack of remembered rows spoils the
 * whole row, and a spoilt row is never used.
 *
 * Source: DWARF 5, 6.4.2 and 7.24; AADWARF64 5.1 (negate_ra_state).
 */
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/cfi_bytes.h"

/* Nesting of DW_CFA_remember_state; in the 2 400 files of a desktop's /usr/bin
 * and /usr/lib it is 1. Each costs a row (76 bytes) of a handler's stack. */
#define MAX_REMEMBERED 2

enum {
    DW_CFA_advance_loc = 0x40,
    DW_CFA_offset = 0x80,
    DW_CFA_restore = 0xc0,
    DW_CFA_nop = 0x00,
    DW_CFA_set_loc = 0x01,
    DW_CFA_advance_loc1 = 0x02,
    DW_CFA_advance_loc2 = 0x03,
    DW_CFA_advance_loc4 = 0x04,
    DW_CFA_offset_extended = 0x05,
    DW_CFA_restore_extended = 0x06,
    DW_CFA_undefined = 0x07,
    DW_CFA_same_value = 0x08,
    DW_CFA_register = 0x09,
    DW_CFA_remember_state = 0x0a,
    DW_CFA_restore_state = 0x0b,
    DW_CFA_def_cfa = 0x0c,
    DW_CFA_def_cfa_register = 0x0d,
    DW_CFA_def_cfa_offset = 0x0e,
    DW_CFA_def_cfa_expression = 0x0f,
    DW_CFA_expression = 0x10,
    DW_CFA_offset_extended_sf = 0x11,
    DW_CFA_def_cfa_sf = 0x12,
    DW_CFA_def_cfa_offset_sf = 0x13,
    DW_CFA_val_offset = 0x14,
    DW_CFA_val_offset_sf = 0x15,
    DW_CFA_val_expression = 0x16,
    DW_CFA_advance_loc8 = 0x1d,
    DW_CFA_negate_ra_state_with_pc = 0x2c,
    DW_CFA_negate_ra_state = 0x2d, /* elsewhere DW_CFA_GNU_window_save */
    DW_CFA_GNU_args_size = 0x2e,
    DW_CFA_GNU_negative_offset_extended = 0x2f
};

struct program {
    struct cfi_bytes code;
    const struct cpprof__fde *fde;
    struct cpprof__cfi_row *row;
    const struct cpprof__cfi_row *initial; /* the CIE's; NULL inside of it */
    uintptr_t location;
    uintptr_t pc;
    unsigned n_remembered;
    struct cpprof__cfi_row remembered[MAX_REMEMBERED];
};

/* A rule for a register that is not followed is dropped. */
static void
set_rule(struct program *p, uint64_t reg, enum cpprof__rule kind, int64_t value)
{
    const int64_t limit = INT32_MAX >> CPPROF__RULE_BITS;
    uint64_t i = reg - CPPROF__RULE_FIRST;

    if (i >= CPPROF__N_RULES)
        return;
    if (value < -limit || value > limit) {
        cfi_spoil(&p->code);
        return;
    }
    p->row->rules[i] = (int32_t)(value * (1 << CPPROF__RULE_BITS)) | (int)kind;
}

/* Wraps as the arithmetic of the program's own machine would. */
static int64_t
factored(const struct program *p, int64_t offset)
{
    return (int64_t)((uint64_t)offset * (uint64_t)p->fde->data_align);
}

/* DWARF 5, 6.4.2.2: what changes one half of a register and offset does not
 * follow an expression. */
static void
expect_cfa_register(struct program *p)
{
    if (p->row->cfa_reg == CPPROF__CFA_EXPRESSION)
        cfi_spoil(&p->code);
}

static void
set_cfa_register(struct program *p, uint64_t reg)
{
    if (reg >= CPPROF__N_REGS)
        cfi_spoil(&p->code);
    else
        p->row->cfa_reg = (int32_t)reg;
}

static void
set_cfa_offset(struct program *p, int64_t offset)
{
    if (offset != (int32_t)offset)
        cfi_spoil(&p->code);
    else
        p->row->cfa_off = (int32_t)offset;
}

/* Pass over an expression; where its length stands, from fde->at. */
static int64_t
take_expression(struct program *p)
{
    int64_t position = p->code.next - p->fde->origin.at;

    cfi_skip(&p->code, cfi_uleb(&p->code));
    return position;
}

static void
restore_rule(struct program *p, uint64_t reg)
{
    uint64_t i = reg - CPPROF__RULE_FIRST;

    if (p->initial == NULL)
        cfi_spoil(&p->code);
    else if (i < CPPROF__N_RULES)
        p->row->rules[i] = p->initial->rules[i];
}

static void
remember(struct program *p)
{
    if (p->n_remembered == MAX_REMEMBERED)
        cfi_spoil(&p->code);
    else
        p->remembered[p->n_remembered++] = *p->row;
}

static void
restore(struct program *p)
{
    if (p->n_remembered == 0)
        cfi_spoil(&p->code);
    else
        *p->row = p->remembered[--p->n_remembered];
}

/* The instructions that begin a new row. False: it is none of them. */
static bool
execute_advance(struct program *p, uint8_t op)
{
    uint64_t delta;

    switch (op) {
    case DW_CFA_set_loc:
        p->location = cfi_encoded(&p->code, p->fde->origin.encoding, 0);
        return true;
    case DW_CFA_advance_loc1:
        delta = cfi_u8(&p->code);
        break;
    case DW_CFA_advance_loc2:
        delta = cfi_u16(&p->code);
        break;
    case DW_CFA_advance_loc4:
        delta = cfi_u32(&p->code);
        break;
    case DW_CFA_advance_loc8:
        delta = cfi_u64(&p->code);
        break;
    default:
        return false;
    }
    p->location += delta * p->fde->code_align;
    return true;
}

/* Instructions without an operand. False: it is none of them. */
static bool
execute_plain(struct program *p, uint8_t op)
{
    switch (op) {
    case DW_CFA_remember_state:
        remember(p);
        return true;
    case DW_CFA_restore_state:
        restore(p);
        return true;
    case DW_CFA_nop:
    case DW_CFA_negate_ra_state: /* return addresses are always stripped */
    case DW_CFA_negate_ra_state_with_pc:
        return true;
    }
    return false;
}

/* Instructions about the CFA. False: it is none of them. */
static bool
execute_cfa(struct program *p, uint8_t op)
{
    switch (op) {
    case DW_CFA_def_cfa:
        set_cfa_register(p, cfi_uleb(&p->code));
        set_cfa_offset(p, (int64_t)cfi_uleb(&p->code));
        return true;
    case DW_CFA_def_cfa_sf:
        set_cfa_register(p, cfi_uleb(&p->code));
        set_cfa_offset(p, factored(p, cfi_sleb(&p->code)));
        return true;
    case DW_CFA_def_cfa_register:
        expect_cfa_register(p);
        set_cfa_register(p, cfi_uleb(&p->code));
        return true;
    case DW_CFA_def_cfa_offset:
        expect_cfa_register(p);
        set_cfa_offset(p, (int64_t)cfi_uleb(&p->code));
        return true;
    case DW_CFA_def_cfa_offset_sf:
        expect_cfa_register(p);
        set_cfa_offset(p, factored(p, cfi_sleb(&p->code)));
        return true;
    case DW_CFA_def_cfa_expression:
        p->row->cfa_reg = CPPROF__CFA_EXPRESSION;
        set_cfa_offset(p, take_expression(p));
        return true;
    }
    return false;
}

/* Instructions that begin with a register, and DW_CFA_GNU_args_size. */
static void
execute_rule(struct program *p, uint8_t op)
{
    uint64_t reg = cfi_uleb(&p->code);
    struct cfi_bytes *code = &p->code;

    switch (op) {
    case DW_CFA_offset_extended:
        set_rule(p, reg, CPPROF__RULE_AT_CFA,
                 factored(p, (int64_t)cfi_uleb(code)));
        return;
    case DW_CFA_offset_extended_sf:
        set_rule(p, reg, CPPROF__RULE_AT_CFA, factored(p, cfi_sleb(code)));
        return;
    case DW_CFA_GNU_negative_offset_extended:
        set_rule(p, reg, CPPROF__RULE_AT_CFA,
                 factored(p, (int64_t)-cfi_uleb(code)));
        return;
    case DW_CFA_val_offset:
        set_rule(p, reg, CPPROF__RULE_CFA_PLUS,
                 factored(p, (int64_t)cfi_uleb(code)));
        return;
    case DW_CFA_val_offset_sf:
        set_rule(p, reg, CPPROF__RULE_CFA_PLUS, factored(p, cfi_sleb(code)));
        return;
    case DW_CFA_restore_extended:
        restore_rule(p, reg);
        return;
    case DW_CFA_undefined:
        set_rule(p, reg, CPPROF__RULE_UNDEFINED, 0);
        return;
    case DW_CFA_same_value:
        set_rule(p, reg, CPPROF__RULE_SAME, 0);
        return;
    case DW_CFA_register:
        set_rule(p, reg, CPPROF__RULE_REGISTER, (int64_t)cfi_uleb(code));
        return;
    case DW_CFA_expression:
        set_rule(p, reg, CPPROF__RULE_AT_EXPRESSION, take_expression(p));
        return;
    case DW_CFA_val_expression:
        set_rule(p, reg, CPPROF__RULE_IS_EXPRESSION, take_expression(p));
        return;
    case DW_CFA_GNU_args_size: /* its operand was taken for a register */
        return;
    }
    cfi_spoil(code);
}

/* Execute an instruction that is not one of the frequent ones. */
static __attribute__((noinline)) void
execute(struct program *p, uint8_t op)
{
    if ((op & 0xc0) == DW_CFA_restore)
        restore_rule(p, op & 0x3f);
    else if (!execute_cfa(p, op) && !execute_advance(p, op) &&
             !execute_plain(p, op))
        execute_rule(p, op);
}

/* Execute code up to p->pc; false: refused. What stands in nearly every
 * program is done here. */
static bool
execute_until(struct program *p, const uint8_t *code, const uint8_t *end)
{
    struct cfi_bytes *b = &p->code;

    *b = (struct cfi_bytes){code, end, p->fde->origin.view};
    while (b->next < b->end && p->location <= p->pc) {
        uint8_t op = cfi_u8(b);

        if ((op & 0xc0) == DW_CFA_advance_loc)
            p->location += (op & 0x3f) * p->fde->code_align;
        else if ((op & 0xc0) == DW_CFA_offset)
            set_rule(p, op & 0x3f, CPPROF__RULE_AT_CFA,
                     factored(p, (int64_t)cfi_uleb(b)));
        else if (op == DW_CFA_def_cfa_offset &&
                 p->row->cfa_reg != CPPROF__CFA_EXPRESSION)
            set_cfa_offset(p, (int64_t)cfi_uleb(b));
        else
            execute(p, op);
    }
    return !cfi_is_spoilt(b);
}

/*
 * Where calls keep no word of the stack, code that lies between the caller and
 * this function may have: a PLT of aarch64 pushes the return address before
 * glibc's _dl_runtime_resolve, which counts its CFA from below that. Then the
 * return address is kept above the CFA, and the caller's stack begins above
 * both, at the next multiple of 16.
 */
static bool
raise_cfa(struct cpprof__cfi_row *row, unsigned ra_column)
{
#if CPPROF__REG_LINK >= 0
    int32_t rule = row->rules[ra_column - CPPROF__RULE_FIRST];
    int32_t n = ((rule >> CPPROF__RULE_BITS) + 8 + 15) & -16;
    unsigned i;

    if ((rule & CPPROF__RULE_MASK) != CPPROF__RULE_AT_CFA || n <= 0 ||
        row->cfa_reg == CPPROF__CFA_EXPRESSION)
        return true;
    for (i = 0; i < CPPROF__N_RULES; i++) {
        int32_t kind = row->rules[i] & CPPROF__RULE_MASK;

        if ((kind == CPPROF__RULE_AT_CFA || kind == CPPROF__RULE_CFA_PLUS) &&
            __builtin_sub_overflow(row->rules[i], n << CPPROF__RULE_BITS,
                                   &row->rules[i]))
            return false;
    }
    return !__builtin_add_overflow(row->cfa_off, n, &row->cfa_off);
#else
    (void)row;
    (void)ra_column;
    return true;
#endif
}

bool
cpprof__cfi_run(const struct cpprof__fde *fde, uintptr_t pc,
                struct cpprof__cfi_row *row)
{
    struct cpprof__cfi_row initial;
    struct program p;

    *row = (struct cpprof__cfi_row){.cfa_reg = CPPROF__REG_SP};
    p.fde = fde;
    p.row = row;
    p.initial = NULL;
    p.location = fde->start;
    p.pc = pc;
    p.n_remembered = 0;
    if (!execute_until(&p, fde->cie_code, fde->cie_end))
        return false;
    initial = *row;
    p.initial = &initial;
    return execute_until(&p, fde->code, fde->end) &&
           raise_cfa(row, fde->origin.ra_column);
}
