/* SPDX-License-Identifier: MIT */
/*
 * The walk: by cached rows as long as they lead on, otherwise one step in full
 * or by guess and then by rows again (see walk.h).
 *
 * What bounds it: max frames; each step is a bounded search and a bounded CFA
 * program; on one stack the stack pointer only grows.
 */
#include "collect/signal/unwind/unwind.h"
#include "arch/atomic.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/walk.h"

/* How often a walk may go down to another stack (a signal frame apart). More
 * would let damaged stacks go around longer; no program is known to need 2. */
#define MAX_SWITCHES 8

bool
cpprof__walk_accepts(struct cpprof__walk *w, uintptr_t from, bool interrupted,
                     uintptr_t sp)
{
    if (sp > from || (sp == from && interrupted))
        return true;
    if (sp - w->view->lo < w->view->hi - w->view->lo || w->switches_left == 0)
        return false;
    w->switches_left--;
    return true;
}

/* Our own table may still list a module that was unloaded. One that libc lists
 * cannot go while code of it is on a stack. */
static bool
is_loaded(struct cpprof__walk *w)
{
    return !cpprof__module_needs_table() || w->module.hdr == NULL ||
           cpprof__stack_fetch(w->view, (uintptr_t)w->module.hdr, 8);
}

static bool
find_module(struct cpprof__walk *w, uintptr_t pc)
{
    if (cpprof__cfi_has_code(&w->module, pc))
        return true;
    if (cpprof__module_find(pc, &w->module) && is_loaded(w))
        return true;
    w->module.code_lo = w->module.code_hi = 0;
    return false;
}

bool
cpprof__walk_find(struct cpprof__walk *w, uintptr_t pc, struct cpprof__fde *fde)
{
    return find_module(w, pc) && cpprof__cfi_find(&w->module, pc, fde);
}

#define RULE_OF(full, reg) ((full)->rules[(reg)-CPPROF__RULE_FIRST])

static int
kind(int32_t rule)
{
    return rule & CPPROF__RULE_MASK;
}

/* Where the CFA is; false: it takes more than a row. */
static bool
shorten_cfa(const struct cpprof__fde *fde, const struct cpprof__cfi_row *full,
            struct cpprof__unwind_row *row)
{
    row->cfa_off = full->cfa_off;
    switch (full->cfa_reg) {
    case CPPROF__REG_FP:
        row->how |= CPPROF__ROW_BY_FP;
        return true;
    case CPPROF__REG_SP:
        return true;
    case CPPROF__CFA_EXPRESSION:
        row->how |= CPPROF__ROW_REALIGNED;
        return cpprof__cfi_is_breg(&fde->origin, full->cfa_off, CPPROF__REG_FP,
                                   true, &row->cfa_off);
    }
    return false;
}

/* What the offsets of rules, which count from the CFA, are from the base. */
static int32_t
base_offset(const struct cpprof__unwind_row *row)
{
    return row->how & CPPROF__ROW_REALIGNED ? 0 : row->cfa_off;
}

static bool
shorten_ra(const struct cpprof__fde *fde, int32_t rule,
           struct cpprof__unwind_row *row)
{
    if (kind(rule) == CPPROF__RULE_AT_CFA)
        return !__builtin_add_overflow(rule >> CPPROF__RULE_BITS,
                                       base_offset(row), &row->ra_off);
    row->how |= CPPROF__ROW_RA_LINK;
    return fde->origin.ra_column == CPPROF__REG_LINK &&
           (kind(rule) == CPPROF__RULE_NONE || kind(rule) == CPPROF__RULE_SAME);
}

static bool
shorten_fp(const struct cpprof__fde *fde, int32_t rule,
           struct cpprof__unwind_row *row)
{
    if (row->how & CPPROF__ROW_REALIGNED)
        return kind(rule) == CPPROF__RULE_AT_EXPRESSION &&
               cpprof__cfi_is_breg(&fde->origin, rule >> CPPROF__RULE_BITS,
                                   CPPROF__REG_FP, false, &row->fp_off);
    row->fp_off = row->ra_off; /* where there is something to be read */
    switch (kind(rule)) {
    case CPPROF__RULE_NONE:
    case CPPROF__RULE_SAME:
        return true;
    case CPPROF__RULE_UNDEFINED:
        row->how |= CPPROF__ROW_FP_LOST;
        return true;
    case CPPROF__RULE_AT_CFA:
        row->how |= CPPROF__ROW_FP_SAVED;
        return !__builtin_add_overflow(rule >> CPPROF__RULE_BITS,
                                       base_offset(row), &row->fp_off);
    }
    return false;
}

/* A full row in short, where that is possible. */
static void
shorten(const struct cpprof__fde *fde, const struct cpprof__cfi_row *full,
        struct cpprof__unwind_row *row)
{
    int32_t ra_rule = RULE_OF(full, fde->origin.ra_column);

    if (kind(ra_rule) == CPPROF__RULE_UNDEFINED)
        row->how = CPPROF__ROW_ROOT;
    else if (fde->origin.signal_frame ||
             RULE_OF(full, CPPROF__REG_SP) != CPPROF__RULE_NONE ||
             !shorten_cfa(fde, full, row) || !shorten_ra(fde, ra_rule, row) ||
             !shorten_fp(fde, RULE_OF(full, CPPROF__REG_FP), row))
        row->how = CPPROF__ROW_FULL;
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

/* Is this the first byte of a function that has information? */
static __attribute__((noinline)) bool
is_entry(struct cpprof__walk *w, uintptr_t pc)
{
    struct cpprof__fde fde;

    return cpprof__walk_find(w, pc, &fde) && fde.start == pc;
}

/* The FDE of the code before ra; not that of a function which just happens to
 * end where the next one is returned to. */
static bool
find_before(struct cpprof__walk *w, uintptr_t ra, bool interrupted,
            struct cpprof__fde *fde)
{
    return cpprof__walk_find(w, ra - 1, fde) &&
           (interrupted || fde->limit != ra || ends_in_call(w, ra) ||
            !is_entry(w, ra));
}

static struct cpprof__packed_row
keep_row(struct cpprof__walk *w, uintptr_t ra,
         const struct cpprof__unwind_row *row)
{
    cpprof__row_store(ra, w->generation, row);
    return cpprof__row_pack(row);
}

/* Find out about the code before ra, and keep it. Without information there it
 * is CPPROF__ROW_NONE, not kept. */
static __attribute__((noinline)) struct cpprof__packed_row
make_row(struct cpprof__walk *w, uintptr_t ra, bool interrupted)
{
    struct cpprof__unwind_row row = {0};
    struct cpprof__cfi_row full;
    struct cpprof__fde fde;

    if (!find_before(w, ra, interrupted, &fde) ||
        !cpprof__cfi_run(&fde, ra - 1, &full)) {
        row.how = CPPROF__ROW_NONE;
        return cpprof__row_pack(&row);
    }
    shorten(&fde, &full, &row);
    if (fde.origin.signal_frame && is_sigreturn(w, ra))
        row.how = CPPROF__ROW_SIGNAL;
    return keep_row(w, ra, &row);
}

/*
 * Find out about code without information: it called the frame below, or is
 * the leaf, or is what signal handlers return to, or what makecontext() and its
 * like let the first function of a stack return to, or is no code at all.
 */
static __attribute__((noinline)) struct cpprof__packed_row
classify(struct cpprof__walk *w, uintptr_t ra, bool interrupted)
{
    struct cpprof__unwind_row row = {0};

    if (is_sigreturn(w, ra))
        row.how = CPPROF__ROW_SIGNAL;
    else if (interrupted || ends_in_call(w, ra))
        row.how = CPPROF__ROW_NONE;
    else
        row.how = is_entry(w, ra) ? CPPROF__ROW_ENTRY : CPPROF__ROW_JUNK;
    return keep_row(w, ra, &row);
}

bool
cpprof__walk_is_return(struct cpprof__walk *w, uintptr_t ra)
{
    struct cpprof__packed_row words;

    if (!cpprof__is_pc(ra))
        return false;
    if (cpprof__row_find(ra, w->generation, &words))
        return cpprof__row_unpack(words).how != CPPROF__ROW_JUNK;
    return ends_in_call(w, ra);
}

/* What the offsets of the current frame's row count from; false: it cannot be
 * had. */
static bool
find_base(struct cpprof__walk *w, const struct cpprof__unwind_row *row,
          uintptr_t *base)
{
    *base = w->at.fp;
    if (row->how & CPPROF__ROW_REALIGNED)
        return stack_read(w->view, *base + (uintptr_t)(intptr_t)row->cfa_off,
                          base);
    if (row->how & CPPROF__ROW_BY_FP)
        return *base != CPPROF__UNKNOWN || cpprof__walk_find_fp(w, base);
    *base = w->at.sp;
    if (!w->at.sp_guessed)
        return true;
    /* fp points at the frame record, which is where fp is saved. */
    *base = w->at.fp - (uintptr_t)(intptr_t)row->fp_off;
    return row->how & CPPROF__ROW_FP_SAVED;
}

static bool
find_ra(struct cpprof__walk *w, const struct cpprof__unwind_row *row,
        uintptr_t base, uintptr_t *ra)
{
#if CPPROF__REG_LINK >= 0
    if (row->how & CPPROF__ROW_RA_LINK) {
        *ra = w->base->r[CPPROF__REG_LINK];
        return w->at.interrupted;
    }
#endif
    return stack_read(w->view, base + (uintptr_t)(intptr_t)row->ra_off, ra);
}

static bool
find_fp(struct cpprof__walk *w, const struct cpprof__unwind_row *row,
        uintptr_t base, uintptr_t *fp)
{
    uintptr_t off = (uintptr_t)(intptr_t)row->fp_off;

    if (row->how & CPPROF__ROW_REALIGNED)
        return stack_read(w->view, *fp + off, fp);
    if (row->how & CPPROF__ROW_FP_SAVED)
        return stack_read(w->view, base + off, fp);
    if (row->how & CPPROF__ROW_FP_LOST)
        *fp = 0;
    return true;
}

/* One step by a row, whatever its kind and wherever the stack is. */
static __attribute__((noinline)) enum cpprof__step
step_by_row(struct cpprof__walk *w, struct cpprof__packed_row words)
{
    const struct cpprof__unwind_row unpacked = cpprof__row_unpack(words);
    const struct cpprof__unwind_row *row = &unpacked;
    uintptr_t fp = w->at.fp;
    uintptr_t base;
    uintptr_t cfa;
    uintptr_t ra;

    if (!find_base(w, row, &base))
        return CPPROF__STEP_BROKEN;
    cfa = base;
    if (!(row->how & CPPROF__ROW_REALIGNED))
        cfa += (uintptr_t)(intptr_t)row->cfa_off;
    if (!cpprof__walk_accepts(w, w->at.sp, w->at.interrupted, cfa) ||
        !find_ra(w, row, base, &ra) || !find_fp(w, row, base, &fp))
        return CPPROF__STEP_BROKEN;
    ra = cpprof__strip_return_address(ra);
    if (ra == 0)
        return CPPROF__STEP_ROOT;
    w->at = (struct cpprof__cursor){.ra = ra, .sp = cfa, .fp = fp};
    return cpprof__is_pc(ra) ? CPPROF__STEP_ON : CPPROF__STEP_BROKEN;
}

static uintptr_t
link_of(const struct cpprof__walk *w)
{
#if CPPROF__REG_LINK >= 0
    if (w->at.interrupted)
        return cpprof__strip_return_address(w->base->r[CPPROF__REG_LINK]);
#endif
    return 0;
}

/* Rows are found by ra alone. One that was made for a caller, at return
 * address - 1, may be met by a frame that was interrupted right there. */
static uint32_t
how_alone(struct cpprof__walk *w, struct cpprof__packed_row row)
{
    uint32_t how = (uint32_t)row.how_cfa & CPPROF__ROW_ALONE;

    if (how == CPPROF__ROW_JUNK && (w->at.interrupted || w->at.by_jump))
        return CPPROF__ROW_NONE;
    if (how == CPPROF__ROW_ENTRY && w->at.interrupted)
        return CPPROF__ROW_FULL;
    if (how == CPPROF__ROW_SIGNAL &&
        !is_sigreturn(w, w->at.ra - w->at.interrupted))
        return CPPROF__ROW_FULL;
    return how;
}

/* One step from the current frame, whose row this is. *at_entry: it is code
 * that nothing called; its return address is its first byte. Nothing here is
 * kept on the stack, so that each of these calls takes the place of this one.
 */
static __attribute__((noinline)) enum cpprof__step
step(struct cpprof__walk *w, struct cpprof__packed_row row, bool *at_entry)
{
    *at_entry = false;
    switch (how_alone(w, row)) {
    case 0:
        return step_by_row(w, row);
    case CPPROF__ROW_ROOT:
        return CPPROF__STEP_ROOT;
    case CPPROF__ROW_FULL:
        return cpprof__walk_full(w, at_entry);
    case CPPROF__ROW_ENTRY:
        *at_entry = true;
        return CPPROF__STEP_ROOT;
    case CPPROF__ROW_SIGNAL:
        *at_entry = true;
        return cpprof__walk_sigreturn(w);
    case CPPROF__ROW_NONE:
        return cpprof__walk_guess(w, &w->at, link_of(w));
    }
    return CPPROF__STEP_JUNK;
}

/*
 * Follow rows for as long as they are there and plain and the stack is in view.
 * *row is that of the current frame, or CPPROF__ROW_MISSING: to be looked up;
 * and at the end that of the last frame, or missing: not found. Stores the
 * frames it finds and returns how many there are now.
 *
 * This is the loop that the cost of a sample is made of: what a step waits for
 * is the load of a return address, a mask, the load of a row, and a sum. It
 * calls nothing, and is left for all that does: its registers would stand in
 * the way on the stack.
 */
static __attribute__((noinline)) size_t
follow_rows(struct cpprof__walk *w, uintptr_t *pcs, size_t n, size_t max,
            struct cpprof__packed_row *row)
{
    const uintptr_t lo = w->view->lo;
    const uintptr_t span = stack_span(w->view);
    const uint32_t generation = w->generation;
    struct cpprof__cursor at = w->at;
    struct cpprof__packed_row r = *row;
    bool have_row = r.how_cfa != CPPROF__ROW_MISSING;

    for (;;) {
        uintptr_t base;
        uintptr_t cfa;
        uintptr_t ra_at;
        uintptr_t fp_at;
        uintptr_t ra;
        uintptr_t fp;

        if (!have_row && !cpprof__row_find(at.ra, generation, &r)) {
            r.how_cfa = CPPROF__ROW_MISSING;
            break;
        }
        have_row = false;
        if ((uint32_t)r.how_cfa > CPPROF__ROW_PLAIN_MAX || at.sp_guessed ||
            n == max)
            break;
        base = at.sp;
        if (r.how_cfa & CPPROF__ROW_BY_FP) {
            base = at.fp;
            /* A branch, which is guessed while the row is still on its way; a
             * conditional move would wait for it. */
            __asm__("" : "+r"(base));
        }
        cfa = base + (uintptr_t)((int64_t)r.how_cfa >> 32);
        ra_at = base + (uintptr_t)(intptr_t)(int32_t)r.ra_fp;
        fp_at = base + (uintptr_t)((int64_t)r.ra_fp >> 32);
        if (cfa <= at.sp || ra_at - lo >= span || fp_at - lo >= span)
            break;
        fp = stack_load(fp_at);
        ra = cpprof__strip_return_address(stack_load(ra_at));
        if (ra == 0)
            break;
        at.sp = cfa;
        at.fp = r.how_cfa & CPPROF__ROW_FP_SAVED ? fp : at.fp;
        at.ra = ra;
        at.interrupted = false;
        at.by_jump = false;
        pcs[n++] = ra - 1;
    }
    w->at = at;
    *row = r;
    return n;
}

/* The row of the current frame, which the cache does not have. */
static struct cpprof__packed_row
learn_row(struct cpprof__walk *w)
{
    struct cpprof__packed_row row = make_row(w, w->at.ra, w->at.interrupted);

    if (row.how_cfa == CPPROF__ROW_NONE)
        row = classify(w, w->at.ra, w->at.interrupted);
    return row;
}

static void
begin(struct cpprof__walk *w, const struct cpprof__regs *regs,
      struct cpprof__stack_view *view)
{
    w->view = view;
    w->generation = load_acquire(&cpprof__row_generation);
    w->switches_left = MAX_SWITCHES;
    /* Another thread returns at any moment, and unloads what it was in. */
    w->module = (struct cpprof__cfi){.view = view->copies_only ? view : NULL};
    w->at = (struct cpprof__cursor){.ra = regs->pc + 1,
                                    .sp = regs->sp,
                                    .fp = regs->fp,
                                    .interrupted = true};
    w->n = 0;
    w->base_n = 0;
    w->base_interrupted = true;
    w->base = &view->base;
    view->base = *regs;
    view->window_at = 0;
    view->window_n = 0;
    view->has_handler = false;
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
    struct cpprof__packed_row row = {CPPROF__ROW_MISSING, 0};
    enum cpprof__step last = CPPROF__STEP_ON;
    struct cpprof__walk w;
    size_t n = 0;

    begin(&w, regs, view);
    while (n < max && last == CPPROF__STEP_ON) {
        bool at_entry;
        bool interrupted;

        pcs[n++] = w.at.ra - 1;
        row.how_cfa = CPPROF__ROW_MISSING;
        n = follow_rows(&w, pcs, n, max, &row);
        while (row.how_cfa == CPPROF__ROW_MISSING) {
            row = learn_row(&w);
            n = follow_rows(&w, pcs, n, max, &row);
        }
        w.n = n - 1;
        interrupted = w.at.interrupted;
        last = step(&w, row, &at_entry);
        if (at_entry && !interrupted)
            pcs[n - 1]++;
        if (last == CPPROF__STEP_JUNK && n > 1)
            n--;
    }
    *end = end_of(last);
    return n;
}

void
cpprof__unwind_forget(void)
{
    /* 0 is the generation of slots that were never written. */
    if (__builtin_expect(add_relaxed(&cpprof__row_generation, 1) == UINT32_MAX,
                         0))
        add_relaxed(&cpprof__row_generation, 1);
}
