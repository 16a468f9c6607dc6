/* SPDX-License-Identifier: MIT */
/*
 * Applying one row of call-frame information to a full set of registers: the
 * way that follows every register, for the frames that need more than sp and
 * fp.
 *
 * Source: DWARF 5, 6.4.3 and 6.4.4.
 */
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/stack_view.h"

/* What the rules of one row are applied with. */
struct step {
    const struct cpprof__cfi_origin *origin;
    struct cpprof__stack_view *view;
    struct cpprof__regs *regs;
    uintptr_t cfa;
};

#define BIT(reg) (1ull << (reg))

static bool
is_known(const struct cpprof__regs *regs, int32_t reg)
{
    return reg >= 0 && reg < CPPROF__N_REGS && (regs->known >> reg & 1);
}

static bool
find_cfa(struct step *s, const struct cpprof__cfi_row *row)
{
    if (row->cfa_reg == CPPROF__CFA_EXPRESSION)
        return cpprof__cfi_evaluate(s->origin, row->cfa_off, s->regs, s->view,
                                    NULL, &s->cfa);
    if (!is_known(s->regs, row->cfa_reg))
        return false;
    s->cfa = s->regs->r[row->cfa_reg] + (uintptr_t)(intptr_t)row->cfa_off;
    return true;
}

/* The value of an expression that is given the CFA. */
static bool
evaluate(struct step *s, int32_t position, uintptr_t *value)
{
    return cpprof__cfi_evaluate(s->origin, position, s->regs, s->view, &s->cfa,
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
        if (!is_known(s->regs, n))
            return false;
        *value = s->regs->r[n];
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

/*
 * Apply the rules in place: room for a second set of registers would be a good
 * part of what a handler may use. What has been done counts as not known until
 * all are, so that a rule that looks at it loses its register, instead of
 * finding the caller's value. fp and sp, which rules do look at, come last.
 * Bits of *found: registers that are known then.
 */
static void
apply_rules(struct step *s, const struct cpprof__cfi_row *row, uint64_t *found)
{
    unsigned i;

    for (i = 0; i < CPPROF__N_RULES + 2; i++) {
        unsigned reg = CPPROF__RULE_FIRST + i;
        int32_t rule;
        uintptr_t value;

        if (reg == CPPROF__REG_FP || reg == CPPROF__REG_SP)
            continue;
        if (i >= CPPROF__N_RULES)
            reg = i == CPPROF__N_RULES ? CPPROF__REG_FP : CPPROF__REG_SP;
        rule = row->rules[reg - CPPROF__RULE_FIRST];
        if (rule == CPPROF__RULE_NONE)
            continue;
        *found &= ~BIT(reg);
        if (apply_rule(s, reg, rule, &value)) {
            s->regs->r[reg] = value;
            *found |= BIT(reg);
        }
        s->regs->known &= ~BIT(reg);
    }
}

/* The registers that are known in the caller if there is no rule. */
static uint64_t
kept(const struct step *s)
{
    return s->origin->signal_frame ? s->regs->known
                                   : s->regs->known & CPPROF__CALLEE_SAVED;
}

bool
cpprof__cfi_step(const struct cpprof__cfi_row *row,
                 const struct cpprof__cfi_origin *origin,
                 struct cpprof__regs *regs, struct cpprof__stack_view *view,
                 bool *root)
{
    int32_t ra_rule = row->rules[origin->ra_column - CPPROF__RULE_FIRST];
    struct step s = {origin, view, regs, 0};
    uintptr_t ra;
    uint64_t found;

    *root = ra_rule == CPPROF__RULE_UNDEFINED;
    if (*root)
        return true;
    if ((ra_rule == CPPROF__RULE_NONE || ra_rule == CPPROF__RULE_SAME) &&
        origin->ra_column != CPPROF__REG_LINK)
        return false;
    if (!find_cfa(&s, row) || !apply_rule(&s, origin->ra_column, ra_rule, &ra))
        return false;
    found = kept(&s);
    apply_rules(&s, row, &found);
    /* DWARF leaves the stack pointer to the ABI: it is the CFA, unless there is
     * a rule. */
    if (row->rules[CPPROF__REG_SP - CPPROF__RULE_FIRST] == CPPROF__RULE_NONE) {
        regs->sp = s.cfa;
        found |= BIT(CPPROF__REG_SP);
    }
    regs->pc = cpprof__strip_return_address(ra);
    regs->known = found | BIT(CPPROF__REG_PC);
    return true;
}
