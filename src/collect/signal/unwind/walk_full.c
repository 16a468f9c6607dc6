/* SPDX-License-Identifier: MIT */
/*
 * Steps that need all registers.
 *
 * The walk by rows knows only sp and fp, so the registers of the current frame
 * are found first, by going from `base` up to it again. `base` then is the
 * caller, and no frame is gone through this way twice.
 */
#include "collect/signal/unwind/walk.h"

#define BIT(reg) (1ull << (reg))

/* One after the other: a whole one on the stack is 32 bytes more for a walk. */
static void
set_cursor(const struct cpprof__walk *w, struct cpprof__cursor *at)
{
    const struct cpprof__regs *r = w->base;

    at->ra = r->pc + w->base_interrupted;
    at->sp = r->sp;
    at->fp = r->known & BIT(CPPROF__REG_FP) ? r->fp : 0;
    at->interrupted = w->base_interrupted;
    at->sp_guessed = !(r->known & BIT(CPPROF__REG_SP));
    at->by_jump = false;
}

/* The step of base where there is no call-frame information. */
static __attribute__((noinline)) enum cpprof__step
guess_base(struct cpprof__walk *w)
{
    struct cpprof__cursor at;
    struct cpprof__regs *r = w->base;
    uintptr_t link = 0;
    enum cpprof__step result;

    set_cursor(w, &at);
#if CPPROF__REG_LINK >= 0
    if (at.interrupted)
        link = cpprof__strip_return_address(r->r[CPPROF__REG_LINK]);
#endif
    result = cpprof__walk_guess(w, &at, link);
    r->pc = at.ra;
    r->sp = at.sp;
    r->fp = at.fp;
    r->known = BIT(CPPROF__REG_FP) | BIT(CPPROF__REG_PC);
    if (!at.sp_guessed)
        r->known |= BIT(CPPROF__REG_SP);
    return result;
}

/* After a guess sp may not be known, but fp points at where it is saved. */
static void
find_sp(struct cpprof__regs *r, const struct cpprof__cfi_row *row)
{
    int32_t rule = row->rules[CPPROF__REG_FP - CPPROF__RULE_FIRST];

    if ((r->known & BIT(CPPROF__REG_SP)) || row->cfa_reg != CPPROF__REG_SP ||
        (rule & CPPROF__RULE_MASK) != CPPROF__RULE_AT_CFA)
        return;
    r->sp = r->fp - (uintptr_t)(intptr_t)(rule >> CPPROF__RULE_BITS) -
            (uintptr_t)(intptr_t)row->cfa_off;
    r->known |= BIT(CPPROF__REG_SP);
}

/* Go on by a row, once that is found. */
static enum cpprof__step
apply(struct cpprof__walk *w, const struct cpprof__cfi_origin *origin,
      const struct cpprof__cfi_row *row)
{
    uintptr_t from;
    bool root;

    find_sp(w->base, row);
    from = w->base->sp;
    if (!cpprof__cfi_step(row, origin, w->base, w->view, &root))
        return CPPROF__STEP_BROKEN;
    if (root || w->base->pc == 0)
        return CPPROF__STEP_ROOT;
    if (!cpprof__is_pc(w->base->pc) ||
        !(w->base->known & BIT(CPPROF__REG_SP)) ||
        (!origin->signal_frame &&
         !cpprof__walk_accepts(w, from, w->base_interrupted, w->base->sp)))
        return CPPROF__STEP_BROKEN;
    return CPPROF__STEP_ON;
}

/* The row of the current pc of base. Of its FDE only the
 * origin is kept: a step has no room for more. */
static __attribute__((noinline)) bool
find_row(struct cpprof__walk *w, struct cpprof__cfi_origin *origin,
         struct cpprof__cfi_row *row)
{
    uintptr_t pc = w->base->pc - !w->base_interrupted;
    struct cpprof__fde fde;

    if (!cpprof__walk_find(w, pc, &fde) || !cpprof__cfi_run(&fde, pc, row))
        return false;
    *origin = fde.origin;
    return true;
}

static enum cpprof__step
step_base(struct cpprof__walk *w, bool *in_signal)
{
    struct cpprof__cfi_origin origin;
    struct cpprof__cfi_row row;
    enum cpprof__step result;

    *in_signal = false;
    if (find_row(w, &origin, &row)) {
        result = apply(w, &origin, &row);
        *in_signal = origin.signal_frame;
    } else {
        result = guess_base(w);
    }
    w->base_interrupted = *in_signal;
    w->view->has_handler |= *in_signal;
    w->base_n++;
    return result;
}

/* Make base the current frame of the walk by rows. */
static void
go_on_from_base(struct cpprof__walk *w)
{
    set_cursor(w, &w->at);
}

enum cpprof__step
cpprof__walk_full(struct cpprof__walk *w, bool *in_signal)
{
    uint16_t switches_left = w->switches_left;
    enum cpprof__step result;

    while (w->base_n < w->n) {
        if (step_base(w, in_signal) != CPPROF__STEP_ON)
            return CPPROF__STEP_BROKEN;
    }
    w->switches_left = switches_left; /* those were counted before */
    if (w->base->pc + w->base_interrupted != w->at.ra)
        return CPPROF__STEP_BROKEN;
    result = step_base(w, in_signal);
    go_on_from_base(w);
    return result;
}

enum cpprof__step
cpprof__walk_sigreturn(struct cpprof__walk *w)
{
    uintptr_t context = w->at.sp + CPPROF__SIGNAL_UCONTEXT;
    unsigned i;

    if (w->at.sp_guessed)
        return CPPROF__STEP_BROKEN;
    for (i = 0; i < CPPROF__N_REGS; i++) {
        if (!stack_read(w->view, context + cpprof__ucontext_offset(i),
                        &w->base->r[i]))
            return CPPROF__STEP_BROKEN;
    }
    w->base->known = BIT(CPPROF__N_REGS) - 1;
    w->base_interrupted = true;
    w->view->has_handler = true;
    w->base_n = w->n + 1;
    go_on_from_base(w);
    return CPPROF__STEP_ON;
}
