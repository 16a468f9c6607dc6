/* SPDX-License-Identifier: MIT */
/*
 * Evaluating: the DWARF expressions of call-frame information. They appear
 * in PLTs, signal trampolines, realigned frames and hand-written assembly.
 *
 * Source: DWARF 5, 2.5 and 7.7; 6.4.2 says which operations cannot occur here.
 */
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/cfi_bytes.h"
#include "collect/signal/unwind/stack_view.h"

#define MAX_STACK 6   /* values; linkers and compilers need 3 */
#define MAX_STEPS 256 /* operations; ends a loop made by DW_OP_skip */

enum {
    DW_OP_addr = 0x03,
    DW_OP_deref = 0x06,
    DW_OP_const1u = 0x08,
    DW_OP_const1s = 0x09,
    DW_OP_const2u = 0x0a,
    DW_OP_const2s = 0x0b,
    DW_OP_const4u = 0x0c,
    DW_OP_const4s = 0x0d,
    DW_OP_const8u = 0x0e,
    DW_OP_const8s = 0x0f,
    DW_OP_constu = 0x10,
    DW_OP_consts = 0x11,
    DW_OP_dup = 0x12,
    DW_OP_drop = 0x13,
    DW_OP_over = 0x14,
    DW_OP_pick = 0x15,
    DW_OP_swap = 0x16,
    DW_OP_rot = 0x17,
    DW_OP_abs = 0x19,
    DW_OP_and = 0x1a,
    DW_OP_div = 0x1b,
    DW_OP_minus = 0x1c,
    DW_OP_mod = 0x1d,
    DW_OP_mul = 0x1e,
    DW_OP_neg = 0x1f,
    DW_OP_not = 0x20,
    DW_OP_or = 0x21,
    DW_OP_plus = 0x22,
    DW_OP_plus_uconst = 0x23,
    DW_OP_shl = 0x24,
    DW_OP_shr = 0x25,
    DW_OP_shra = 0x26,
    DW_OP_xor = 0x27,
    DW_OP_bra = 0x28,
    DW_OP_eq = 0x29,
    DW_OP_ge = 0x2a,
    DW_OP_gt = 0x2b,
    DW_OP_le = 0x2c,
    DW_OP_lt = 0x2d,
    DW_OP_ne = 0x2e,
    DW_OP_skip = 0x2f,
    DW_OP_lit0 = 0x30,
    DW_OP_lit31 = 0x4f,
    DW_OP_reg0 = 0x50,
    DW_OP_reg31 = 0x6f,
    DW_OP_breg0 = 0x70,
    DW_OP_breg31 = 0x8f,
    DW_OP_regx = 0x90,
    DW_OP_bregx = 0x92,
    DW_OP_deref_size = 0x94,
    DW_OP_nop = 0x96
};

struct machine {
    struct cfi_bytes code; /* spoilt: the expression is refused */
    const uint8_t *begin;
    const struct cpprof__regs *regs;
    struct cpprof__stack_view *view;
    unsigned n;
    uintptr_t stack[MAX_STACK];
};

static void
push(struct machine *m, uintptr_t v)
{
    if (m->n == MAX_STACK)
        cfi_spoil(&m->code);
    else
        m->stack[m->n++] = v;
}

static uintptr_t
pop(struct machine *m)
{
    if (m->n == 0) {
        cfi_spoil(&m->code);
        return 0;
    }
    return m->stack[--m->n];
}

/* The value i places below the top, which is 0. */
static uintptr_t
peek(struct machine *m, unsigned i)
{
    if (i >= m->n) {
        cfi_spoil(&m->code);
        return 0;
    }
    return m->stack[m->n - 1 - i];
}

static uintptr_t
register_value(struct machine *m, uint64_t reg)
{
    if (reg >= CPPROF__N_REGS || !(m->regs->known >> reg & 1)) {
        cfi_spoil(&m->code);
        return 0;
    }
    return m->regs->r[reg];
}

static void
deref(struct machine *m, unsigned n)
{
    uintptr_t v;

    if (n == 0 || n > 8 || !stack_read(m->view, pop(m), &v)) {
        cfi_spoil(&m->code);
        return;
    }
    push(m, n == 8 ? v : v & ((1ull << 8 * n) - 1));
}

static void
jump(struct machine *m, int16_t distance)
{
    if (distance > m->code.end - m->code.next ||
        distance < m->begin - m->code.next)
        cfi_spoil(&m->code);
    else
        m->code.next += distance;
}

/* Constants: 0x08 to 0x11. */
static uintptr_t
constant(struct machine *m, uint8_t op)
{
    struct cfi_bytes *b = &m->code;

    switch (op) {
    case DW_OP_const1u:
        return cfi_u8(b);
    case DW_OP_const1s:
        return (uintptr_t)(intptr_t)(int8_t)cfi_u8(b);
    case DW_OP_const2u:
        return cfi_u16(b);
    case DW_OP_const2s:
        return (uintptr_t)(intptr_t)(int16_t)cfi_u16(b);
    case DW_OP_const4u:
        return cfi_u32(b);
    case DW_OP_const4s:
        return (uintptr_t)(intptr_t)(int32_t)cfi_u32(b);
    case DW_OP_constu:
        return cfi_uleb(b);
    case DW_OP_consts:
        return (uintptr_t)cfi_sleb(b);
    }
    return cfi_u64(b); /* addr, const8u, const8s */
}

/* Stack operations: 0x12 to 0x17. */
static void
shuffle(struct machine *m, uint8_t op)
{
    uintptr_t a;
    uintptr_t b;
    uintptr_t c;

    switch (op) {
    case DW_OP_dup:
        push(m, peek(m, 0));
        return;
    case DW_OP_drop:
        pop(m);
        return;
    case DW_OP_over:
        push(m, peek(m, 1));
        return;
    case DW_OP_pick:
        push(m, peek(m, cfi_u8(&m->code)));
        return;
    case DW_OP_swap:
        a = pop(m);
        b = pop(m);
        push(m, a);
        push(m, b);
        return;
    case DW_OP_rot:
        a = pop(m);
        b = pop(m);
        c = pop(m);
        push(m, a);
        push(m, c);
        push(m, b);
        return;
    }
    cfi_spoil(&m->code);
}

static uintptr_t
divide(struct machine *m, uintptr_t a, uintptr_t b)
{
    if (b == 0) {
        cfi_spoil(&m->code);
        return 0;
    }
    /* INTPTR_MIN / -1 has no result in a register. */
    return b == UINTPTR_MAX ? -a : (uintptr_t)((intptr_t)a / (intptr_t)b);
}

static uintptr_t
modulo(struct machine *m, uintptr_t a, uintptr_t b)
{
    if (b == 0) {
        cfi_spoil(&m->code);
        return 0;
    }
    return a % b;
}

static uintptr_t
shift_arithmetic(uintptr_t a, uintptr_t n)
{
    intptr_t v = (intptr_t)a;

    return (uintptr_t)(v >> (n < 64 ? n : 63));
}

/* The operations that make one value of two; a was pushed first. Signed
 * comparison (DWARF 5, 2.5.1.5). */
static uintptr_t
binary(struct machine *m, uint8_t op, uintptr_t a, uintptr_t b)
{
    switch (op) {
    case DW_OP_and:
        return a & b;
    case DW_OP_div:
        return divide(m, a, b);
    case DW_OP_minus:
        return a - b;
    case DW_OP_mod:
        return modulo(m, a, b);
    case DW_OP_mul:
        return a * b;
    case DW_OP_or:
        return a | b;
    case DW_OP_plus:
        return a + b;
    case DW_OP_shl:
        return b < 64 ? a << b : 0;
    case DW_OP_shr:
        return b < 64 ? a >> b : 0;
    case DW_OP_shra:
        return shift_arithmetic(a, b);
    case DW_OP_xor:
        return a ^ b;
    case DW_OP_eq:
        return a == b;
    case DW_OP_ge:
        return (intptr_t)a >= (intptr_t)b;
    case DW_OP_gt:
        return (intptr_t)a > (intptr_t)b;
    case DW_OP_le:
        return (intptr_t)a <= (intptr_t)b;
    case DW_OP_lt:
        return (intptr_t)a < (intptr_t)b;
    case DW_OP_ne:
        return a != b;
    }
    cfi_spoil(&m->code);
    return 0;
}

static void
execute_binary(struct machine *m, uint8_t op)
{
    uintptr_t b = pop(m);
    uintptr_t a = pop(m);

    push(m, binary(m, op, a, b));
}

static void
execute_unary(struct machine *m, uint8_t op)
{
    uintptr_t a = pop(m);

    if (op == DW_OP_abs)
        push(m, (intptr_t)a < 0 ? -a : a);
    else
        push(m, op == DW_OP_neg ? -a : ~a);
}

/* Operations with an operand or an effect of their own. False: none of them. */
static bool
execute_special(struct machine *m, uint8_t op)
{
    struct cfi_bytes *b = &m->code;
    uint64_t reg;
    int16_t distance;

    switch (op) {
    case DW_OP_deref:
        deref(m, 8);
        return true;
    case DW_OP_deref_size:
        deref(m, cfi_u8(b));
        return true;
    case DW_OP_plus_uconst:
        push(m, pop(m) + cfi_uleb(b));
        return true;
    case DW_OP_bra:
        distance = (int16_t)cfi_u16(b);
        if (pop(m) != 0)
            jump(m, distance);
        return true;
    case DW_OP_skip:
        jump(m, (int16_t)cfi_u16(b));
        return true;
    case DW_OP_regx:
        push(m, register_value(m, cfi_uleb(b)));
        return true;
    case DW_OP_bregx:
        reg = cfi_uleb(b);
        push(m, register_value(m, reg) + (uintptr_t)cfi_sleb(b));
        return true;
    case DW_OP_abs:
    case DW_OP_neg:
    case DW_OP_not:
        execute_unary(m, op);
        return true;
    case DW_OP_nop:
        return true;
    }
    return false;
}

static __attribute__((noinline)) void
execute(struct machine *m)
{
    uint8_t op = cfi_u8(&m->code);
    unsigned reg = op - DW_OP_breg0;

    if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
        push(m, register_value(m, reg) + (uintptr_t)cfi_sleb(&m->code));
    else if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
        push(m, op - DW_OP_lit0);
    else if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
        push(m, register_value(m, op - DW_OP_reg0));
    else if (op == DW_OP_addr || (op >= DW_OP_const1u && op <= DW_OP_consts))
        push(m, constant(m, op));
    else if (op >= DW_OP_dup && op <= DW_OP_rot)
        shuffle(m, op);
    else if (!execute_special(m, op))
        execute_binary(m, op);
}

/* The bytes of the expression whose length stands at origin->at + position. */
static struct cfi_bytes
open_expression(const struct cpprof__cfi_origin *origin, int32_t position)
{
    const uint8_t *at = origin->at + position;
    struct cfi_bytes b = {at, origin->at + origin->n, origin->view};
    uint64_t n = cfi_uleb(&b);

    if (cfi_need(&b, n))
        b.end = b.next + n;
    return b;
}

bool
cpprof__cfi_evaluate(const struct cpprof__cfi_origin *origin, int32_t position,
                     const struct cpprof__regs *regs,
                     struct cpprof__stack_view *view, const uintptr_t *initial,
                     uintptr_t *value)
{
    struct machine m;
    unsigned i;

    m.code = open_expression(origin, position);
    m.begin = m.code.next;
    m.regs = regs;
    m.view = view;
    m.n = 0;
    if (initial != NULL)
        push(&m, *initial);
    for (i = 0; i < MAX_STEPS && m.code.next < m.code.end; i++)
        execute(&m);
    if (m.code.next < m.code.end || m.n == 0 || cfi_is_spoilt(&m.code))
        return false;
    *value = m.stack[m.n - 1];
    return true;
}

bool
cpprof__cfi_is_breg(const struct cpprof__cfi_origin *origin, int32_t position,
                    unsigned reg, bool deref, int32_t *offset)
{
    struct cfi_bytes b = open_expression(origin, position);
    int64_t v;

    if (cfi_u8(&b) != DW_OP_breg0 + reg)
        return false;
    v = cfi_sleb(&b);
    if (deref && cfi_u8(&b) != DW_OP_deref)
        return false;
    if (cfi_is_spoilt(&b) || b.next != b.end || v != (int32_t)v)
        return false;
    *offset = (int32_t)v;
    return true;
}
