/* SPDX-License-Identifier: MIT */
/*
 * Applying one row of call-frame information to a full set of registers: the
 * way that follows every register, for the frames that need more than sp and
 * fp.
 *
 * Source: DWARF 5, 6.4.3 and 6.4.4.
 */
#include "collect/signal/cfi.h"
#include "collect/signal/stack_view.h"

/* What the rules of one row are applied with. */
struct step {
    const struct cpprof__fde *fde;
    struct cpprof__stack_view *view;
    struct cpprof__regs old;
    uintptr_t cfa;
};

static bool
is_known(const struct cpprof__regs *regs, int32_t reg)
{
    return reg >= 0 && reg < CPPROF__N_REGS && (regs->known >> reg & 1);
}

static bool
find_cfa(struct step *s, const struct cpprof__cfi_row *row)
{
    if (row->cfa_reg == CPPROF__CFA_EXPRESSION)
        return cpprof__cfi_evaluate(s->fde, row->cfa_off, &s->old, s->view,
                                    NULL, &s->cfa);
    if (!is_known(&s->old, row->cfa_reg))
        return false;
    s->cfa = s->old.r[row->cfa_reg] + (uintptr_t)(intptr_t)row->cfa_off;
    return true;
}

/* The value of an expression that is given the CFA. */
static bool
evaluate(struct step *s, int32_t position, uintptr_t *value)
{
    return cpprof__cfi_evaluate(s->fde, position, &s->old, s->view, &s->cfa,
                                value);
}

/* The caller's value of register reg by its rule; false: it is lost. */
static bool
apply_rule(struct step *s, unsigned reg, int32_t rule, uintptr_t *value)
{
    int32_t n = rule >> CPPROF__RULE_BITS;
    uintptr_t at = s->cfa + (uintptr_t)(intptr_t)n;

    switch (rule & CPPROF__RULE_MASK) {
    case CPPROF__RULE_NONE:
    case CPPROF__RULE_SAME:
        n = (int32_t)reg;
        /* fall through */
    case CPPROF__RULE_REGISTER:
        if (!is_known(&s->old, n))
            return false;
        *value = s->old.r[n];
        return true;
    case CPPROF__RULE_AT_CFA:
        return stack_read(s->view, at, value);
    case CPPROF__RULE_CFA_PLUS:
        *value = at;
        return true;
    case CPPROF__RULE_AT_EXPRESSION:
        return evaluate(s, n, &at) && stack_read(s->view, at, value);
    case CPPROF__RULE_IS_EXPRESSION:
        return evaluate(s, n, value);
    }
    return false;
}

static void
apply_rules(struct step *s, const struct cpprof__cfi_row *row,
            struct cpprof__regs *regs)
{
    unsigned i;

    for (i = 0; i < CPPROF__N_RULES; i++) {
        unsigned reg = CPPROF__RULE_FIRST + i;
        uint64_t bit = 1ull << reg;

        if (row->rules[i] == CPPROF__RULE_NONE)
            continue;
        regs->known &= ~bit;
        if (apply_rule(s, reg, row->rules[i], &regs->r[reg]))
            regs->known |= bit;
    }
}

bool
cpprof__cfi_step(const struct cpprof__cfi_row *row,
                 const struct cpprof__fde *fde, struct cpprof__regs *regs,
                 struct cpprof__stack_view *view, bool *root)
{
    int32_t ra_rule = row->rules[fde->ra_column - CPPROF__RULE_FIRST];
    struct step s = {fde, view, *regs, 0};
    uintptr_t ra;

    *root = ra_rule == CPPROF__RULE_UNDEFINED;
    if (*root)
        return true;
    if ((ra_rule == CPPROF__RULE_NONE || ra_rule == CPPROF__RULE_SAME) &&
        fde->ra_column != CPPROF__REG_LINK)
        return false;
    if (!find_cfa(&s, row) || !apply_rule(&s, fde->ra_column, ra_rule, &ra))
        return false;
    /* DWARF leaves the rules of other registers to the ABI; the stack pointer
     * is the CFA unless there is a rule. */
    if (!fde->signal_frame)
        regs->known &= CPPROF__CALLEE_SAVED;
    regs->sp = s.cfa;
    regs->known |= 1ull << CPPROF__REG_SP | 1ull << CPPROF__REG_PC;
    apply_rules(&s, row, regs);
    regs->pc = cpprof__strip_return_address(ra);
    regs->known |= 1ull << CPPROF__REG_PC;
    return true;
}
