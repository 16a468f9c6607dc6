/* SPDX-License-Identifier: MIT */
/*
 * The walk: by cached rows as long as they lead on, otherwise one step in full
 * or by guess and then by rows again (see walk.h).
 *
 * What bounds it: max frames; each step is a bounded search and a bounded CFA
 * program; on one stack the stack pointer only grows.
 */
#include "collect/signal/unwind.h"
#include "arch/atomic.h"
#include "collect/signal/module.h"
#include "collect/signal/walk.h"

/* How often a walk may go down to another stack (a signal frame apart). More
 * would let damaged stacks go around longer; no program is known to need 2. */
#define MAX_SWITCHES 8

bool
cpprof__walk_accepts(struct cpprof__walk *w, const struct cpprof__cursor *at,
                     uintptr_t sp)
{
    if (sp > at->sp || (sp == at->sp && at->interrupted))
        return true;
    if (sp - w->view->lo < w->view->hi - w->view->lo || w->switches_left == 0)
        return false;
    w->switches_left--;
    return true;
}

static bool
find_module(struct cpprof__walk *w, uintptr_t pc)
{
    if (pc >= (uintptr_t)w->module.lo && pc < (uintptr_t)w->module.hi)
        return true;
    return cpprof__module_find(pc, &w->module);
}

bool
cpprof__walk_find(struct cpprof__walk *w, uintptr_t pc, struct cpprof__fde *fde)
{
    return find_module(w, pc) && cpprof__cfi_find(&w->module, pc, fde);
}

/* The way to the CFA as a row has it; false: it takes more than a row. */
static bool
row_cfa(const struct cpprof__fde *fde, const struct cpprof__cfi_row *full,
        struct cpprof__row *row)
{
    row->cfa_off = full->cfa_off;
    if (full->cfa_reg == CPPROF__REG_SP)
        row->cfa = CPPROF__ROW_SP;
    else if (full->cfa_reg == CPPROF__REG_FP)
        row->cfa = CPPROF__ROW_FP;
    else if (full->cfa_reg == CPPROF__CFA_EXPRESSION &&
             cpprof__cfi_is_breg(fde, full->cfa_off, CPPROF__REG_FP, true,
                                 &row->cfa_off))
        row->cfa = CPPROF__ROW_FP_DEREF;
    else
        return false;
    return true;
}

static bool
row_ra(const struct cpprof__fde *fde, int32_t rule, struct cpprof__row *row)
{
    row->ra = CPPROF__ROW_RA_AT_CFA;
    row->ra_off = rule >> CPPROF__RULE_BITS;
    switch (rule & CPPROF__RULE_MASK) {
    case CPPROF__RULE_AT_CFA:
        return true;
    case CPPROF__RULE_NONE:
    case CPPROF__RULE_SAME:
        row->ra = CPPROF__ROW_RA_LINK;
        return fde->ra_column == CPPROF__REG_LINK;
    }
    return false;
}

static bool
row_fp(const struct cpprof__fde *fde, int32_t rule, struct cpprof__row *row)
{
    row->fp_off = rule >> CPPROF__RULE_BITS;
    switch (rule & CPPROF__RULE_MASK) {
    case CPPROF__RULE_NONE:
    case CPPROF__RULE_SAME:
        row->fp = CPPROF__ROW_FP_SAME;
        return true;
    case CPPROF__RULE_UNDEFINED:
        row->fp = CPPROF__ROW_FP_LOST;
        return true;
    case CPPROF__RULE_AT_CFA:
        row->fp = CPPROF__ROW_FP_AT_CFA;
        return true;
    case CPPROF__RULE_AT_EXPRESSION:
        row->fp = CPPROF__ROW_FP_AT_FP;
        return cpprof__cfi_is_breg(fde, row->fp_off, CPPROF__REG_FP, false,
                                   &row->fp_off);
    }
    return false;
}

#define RULE_OF(full, reg) ((full)->rules[(reg)-CPPROF__RULE_FIRST])

/* A full row in short, where that is possible. */
static void
shorten(const struct cpprof__fde *fde, const struct cpprof__cfi_row *full,
        struct cpprof__row *row)
{
    int32_t ra_rule = RULE_OF(full, fde->ra_column);

    if (ra_rule == CPPROF__RULE_UNDEFINED)
        row->cfa = CPPROF__ROW_ROOT;
    else if (fde->signal_frame ||
             RULE_OF(full, CPPROF__REG_SP) != CPPROF__RULE_NONE ||
             !row_cfa(fde, full, row) || !row_ra(fde, ra_rule, row) ||
             !row_fp(fde, RULE_OF(full, CPPROF__REG_FP), row))
        row->cfa = CPPROF__ROW_FULL;
}

static bool
is_sigreturn(struct cpprof__walk *w, uintptr_t pc)
{
    return cpprof__stack_fetch(w->view, pc, CPPROF__SIGRETURN_BYTES) &&
           cpprof__is_sigreturn((const uint8_t *)w->view->window);
}

static bool
ends_in_call(struct cpprof__walk *w, uintptr_t ra)
{
    return cpprof__is_pc(ra) && cpprof__stack_fetch(w->view, ra - 8, 8) &&
           cpprof__ends_in_call((const uint8_t *)w->view->window);
}

/* What code without information is: something that called the frame below, or
 * the leaf itself, or what signal handlers return to, or no code at all. */
static enum cpprof__row_cfa
classify(struct cpprof__walk *w, uintptr_t key, bool interrupted)
{
    if (is_sigreturn(w, key + 1))
        return CPPROF__ROW_SIGNAL;
    if (interrupted || ends_in_call(w, key + 1))
        return CPPROF__ROW_NONE;
    return CPPROF__ROW_JUNK;
}

/* Find out about key, and keep it. */
static __attribute__((noinline)) void
make_row(struct cpprof__walk *w, uintptr_t key, bool interrupted,
         struct cpprof__row *row)
{
    struct cpprof__cfi_row full;
    struct cpprof__fde fde;

    *row = (struct cpprof__row){0};
    if (cpprof__walk_find(w, key, &fde) && cpprof__cfi_run(&fde, key, &full)) {
        shorten(&fde, &full, row);
        if (fde.signal_frame && is_sigreturn(w, key + 1))
            row->cfa = CPPROF__ROW_SIGNAL;
    } else {
        row->cfa = (uint8_t)classify(w, key, interrupted);
    }
    cpprof__row_store(key, w->generation, row);
}

static void
get_row(struct cpprof__walk *w, uintptr_t key, bool interrupted,
        struct cpprof__row *row)
{
    if (!cpprof__row_find(key, w->generation, row))
        make_row(w, key, interrupted, row);
}

bool
cpprof__walk_is_return(struct cpprof__walk *w, uintptr_t ra)
{
    struct cpprof__row row;

    if (!cpprof__is_pc(ra))
        return false;
    if (cpprof__row_find(ra - 1, w->generation, &row))
        return row.cfa != CPPROF__ROW_JUNK;
    return ends_in_call(w, ra);
}

/* The CFA of the current frame by its row; false: it cannot be had. */
static bool
cfa_by_row(struct cpprof__walk *w, const struct cpprof__row *row,
           uintptr_t *cfa)
{
    uintptr_t off = (uintptr_t)(intptr_t)row->cfa_off;

    *cfa = w->at.fp + off;
    if (row->cfa == CPPROF__ROW_FP)
        return true;
    if (row->cfa == CPPROF__ROW_FP_DEREF)
        return stack_read(w->view, *cfa, cfa);
    *cfa = w->at.sp + off;
    if (!w->at.sp_guessed)
        return true;
    /* The frame pointer points at the frame record, where it is saved. */
    *cfa = w->at.fp - (uintptr_t)(intptr_t)row->fp_off;
    return row->fp == CPPROF__ROW_FP_AT_CFA;
}

static bool
ra_by_row(struct cpprof__walk *w, const struct cpprof__row *row, uintptr_t cfa,
          uintptr_t *ra)
{
#if CPPROF__REG_LINK >= 0
    if (row->ra == CPPROF__ROW_RA_LINK) {
        *ra = w->base.r[CPPROF__REG_LINK];
        return w->at.interrupted;
    }
#endif
    return stack_read(w->view, cfa + (uintptr_t)(intptr_t)row->ra_off, ra);
}

static bool
fp_by_row(struct cpprof__walk *w, const struct cpprof__row *row, uintptr_t cfa,
          uintptr_t *fp)
{
    uintptr_t off = (uintptr_t)(intptr_t)row->fp_off;

    switch (row->fp) {
    case CPPROF__ROW_FP_AT_CFA:
        return stack_read(w->view, cfa + off, fp);
    case CPPROF__ROW_FP_AT_FP:
        return stack_read(w->view, *fp + off, fp);
    case CPPROF__ROW_FP_LOST:
        *fp = 0;
    }
    return true;
}

/* One step by a row, whatever its kind and wherever the stack is. */
static enum cpprof__step
step_by_row(struct cpprof__walk *w, const struct cpprof__row *row)
{
    uintptr_t fp = w->at.fp;
    uintptr_t cfa;
    uintptr_t ra;

    if (!cfa_by_row(w, row, &cfa) || !cpprof__walk_accepts(w, &w->at, cfa) ||
        !ra_by_row(w, row, cfa, &ra) || !fp_by_row(w, row, cfa, &fp))
        return CPPROF__STEP_BROKEN;
    ra = cpprof__strip_return_address(ra);
    if (ra == 0)
        return CPPROF__STEP_ROOT;
    w->at = (struct cpprof__cursor){.key = ra - 1, .sp = cfa, .fp = fp};
    return cpprof__is_pc(ra) ? CPPROF__STEP_ON : CPPROF__STEP_BROKEN;
}

static uintptr_t
link_of(const struct cpprof__walk *w)
{
#if CPPROF__REG_LINK >= 0
    if (w->at.interrupted)
        return cpprof__strip_return_address(w->base.r[CPPROF__REG_LINK]);
#endif
    return 0;
}

/* Rows are found by key alone. One that was made for a caller, at return
 * address - 1, may be met by a frame that was interrupted right there. */
static enum cpprof__row_cfa
kind_of(struct cpprof__walk *w, const struct cpprof__row *row)
{
    if (row->cfa == CPPROF__ROW_JUNK && w->at.interrupted)
        return CPPROF__ROW_NONE;
    if (row->cfa == CPPROF__ROW_SIGNAL &&
        !is_sigreturn(w, w->at.key + !w->at.interrupted))
        return CPPROF__ROW_FULL;
    return row->cfa;
}

/* One step from the current frame, whose row this is. *in_signal: it is the
 * code that signal handlers return to. */
static __attribute__((noinline)) enum cpprof__step
step(struct cpprof__walk *w, const struct cpprof__row *row, bool *in_signal)
{
    *in_signal = false;
    switch (kind_of(w, row)) {
    case CPPROF__ROW_SP:
    case CPPROF__ROW_FP:
    case CPPROF__ROW_FP_DEREF:
        return step_by_row(w, row);
    case CPPROF__ROW_ROOT:
        return CPPROF__STEP_ROOT;
    case CPPROF__ROW_FULL:
        return cpprof__walk_full(w, in_signal);
    case CPPROF__ROW_SIGNAL:
        *in_signal = true;
        return cpprof__walk_sigreturn(w);
    case CPPROF__ROW_NONE:
        return cpprof__walk_guess(w, &w->at, link_of(w));
    case CPPROF__ROW_JUNK:
        break;
    }
    return CPPROF__STEP_JUNK;
}

/*
 * Follow rows for as long as they are plain and the stack is in view. Stores
 * the frames it finds; *row is the row of the last one. Returns how many
 * frames there are now.
 *
 * This is the loop that the cost of a sample is made of. What keeps a step
 * short: sp, fp and key in registers, one cache line of rows, no calls.
 */
static size_t
follow_rows(struct cpprof__walk *w, uintptr_t *pcs, size_t n, size_t max,
            struct cpprof__row *row)
{
    const uintptr_t lo = w->view->lo;
    const uintptr_t span = stack_span(w->view);
    struct cpprof__cursor at = w->at;

    for (;;) {
        uintptr_t cfa;
        uintptr_t ra_at;
        uintptr_t ra;

        get_row(w, at.key, at.interrupted, row);
        if (row->cfa > CPPROF__ROW_FP || at.sp_guessed || n == max)
            break;
        cfa = row->cfa == CPPROF__ROW_SP ? at.sp : at.fp;
        cfa += (uintptr_t)(intptr_t)row->cfa_off;
        ra_at = cfa + (uintptr_t)(intptr_t)row->ra_off;
        if (cfa <= at.sp || ra_at - lo >= span ||
            row->ra != CPPROF__ROW_RA_AT_CFA)
            break;
        ra = cpprof__strip_return_address(stack_load(ra_at));
        if (!cpprof__is_pc(ra))
            break;
        if (row->fp != CPPROF__ROW_FP_SAME) {
            uintptr_t fp_at = cfa + (uintptr_t)(intptr_t)row->fp_off;

            if (row->fp != CPPROF__ROW_FP_AT_CFA || fp_at - lo >= span)
                break;
            at.fp = stack_load(fp_at);
        }
        at.sp = cfa;
        at.key = ra - 1;
        at.interrupted = false;
        pcs[n++] = at.key;
    }
    w->at = at;
    return n;
}

static void
begin(struct cpprof__walk *w, const struct cpprof__regs *regs,
      struct cpprof__stack_view *view)
{
    w->view = view;
    w->generation = load_acquire(&cpprof__row_generation);
    w->switches_left = MAX_SWITCHES;
    w->module = (struct cpprof__cfi){NULL, NULL, NULL};
    w->at = (struct cpprof__cursor){
        .key = regs->pc, .sp = regs->sp, .fp = regs->fp, .interrupted = true};
    w->n = 0;
    w->base_n = 0;
    w->base_interrupted = true;
    w->base = *regs;
    view->window_at = 0;
    view->window_n = 0;
}

static enum cpprof__unwind_end
end_of(enum cpprof__step last)
{
    switch (last) {
    case CPPROF__STEP_ON:
        return CPPROF__UNWIND_DEPTH;
    case CPPROF__STEP_ROOT:
        return CPPROF__UNWIND_ROOT;
    default:
        return CPPROF__UNWIND_BROKEN;
    }
}

size_t
cpprof__unwind(const struct cpprof__regs *regs, struct cpprof__stack_view *view,
               uintptr_t *pcs, size_t max, enum cpprof__unwind_end *end)
{
    struct cpprof__walk w;
    struct cpprof__row row;
    enum cpprof__step last = CPPROF__STEP_ON;
    size_t n = 0;

    begin(&w, regs, view);
    while (n < max && last == CPPROF__STEP_ON) {
        bool in_signal;
        bool interrupted;

        pcs[n++] = w.at.key;
        n = follow_rows(&w, pcs, n, max, &row);
        w.n = n - 1;
        interrupted = w.at.interrupted;
        last = step(&w, &row, &in_signal);
        /* A handler returns to the first byte of this code: no call is
         * before it. */
        if (in_signal && !interrupted)
            pcs[n - 1]++;
        if (last == CPPROF__STEP_JUNK && n > 1)
            n--;
    }
    *end = end_of(last);
    return n;
}
