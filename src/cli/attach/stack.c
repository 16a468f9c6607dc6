/* SPDX-License-Identifier: MIT */
/*
 * Is it safe to make a thread here? The stack of a thread that is stopped is
 * walked by call-frame information, with the tables of the files and the memory
 * of the process. No frame may be in the loader, in the module that provides
 * malloc, or in one of a list of libc's functions. A thread that was running in
 * a function of libc that has no name is taken for unsafe, too.
 *
 * Where the walk ends early (code made at run time), no word of what is left of
 * the stack may point into any of these.
 *
 * Of musl all is unsafe, but for functions that are known to wait and to hold
 * nothing (musl.c), and what they call: from the leaf up to the first function
 * with a name.
 *
 * The signature of an unsafe stack is the outermost unsafe frame: once that has
 * returned, all is well. So where its return address stands is found, too.
 */
#include "cli/attach/attach.h"

#include "collect/signal/unwind/cfi.h"

#include <elf.h>
#include <string.h>

#if defined __x86_64__ && defined __LP64__

/* More frames than this are looked at as words. */
#define FRAMES_MAX 2000

/* So much of a stack is read at once, and words are looked at in so much. */
#define SNAPSHOT_BYTES (64 * 1024u)
#define SCAN_BYTES     (1024 * 1024u)

/* So far behind a copy an address is still one of the same stack. */
#define STACK_NEAR (1024 * 1024u)

/* _start is shorter. */
#define ENTRY_BYTES 128

/* A register's value is needed in the caller if it outlives calls. */
#define KEPT(regs) ((regs)->known & CPPROF__CALLEE_SAVED)

struct walk {
    const struct cpprof__target *target;
    struct cpprof__regs regs;
    uint64_t at; /* of the snapshot */
    size_t n;
    bool is_copy; /* of a thread that has gone on: there is nothing else */
    bool is_cut;  /* this step needed what lies behind the copy */
    uint8_t snapshot[SNAPSHOT_BYTES];
};

static bool
take_snapshot(struct walk *w, uint64_t at)
{
    size_t n = sizeof w->snapshot;

    for (; n >= 4096; n /= 2)
        if (cpprof__target_read(w->target->pid, at, w->snapshot, n))
            break;
    if (n < 4096) {
        n = 4096 - (at & 4095);
        if (!cpprof__target_read(w->target->pid, at, w->snapshot, n))
            n = 0;
    }
    w->at = at;
    w->n = n;
    return n >= 8;
}

static bool
read_word(struct walk *w, uint64_t at, uint64_t *value)
{
    if (w->n < 8 || at - w->at > w->n - 8) {
        w->is_cut |= at + 8 - (w->at + w->n) - 1 < STACK_NEAR;
        return !w->is_copy &&
               cpprof__target_read(w->target->pid, at, value, sizeof *value);
    }
    memcpy(value, w->snapshot + (at - w->at), sizeof *value);
    return true;
}

/* ------------------------------------------------------------ one step ---- */

/* Where the return address of the current frame stood; 0: in no memory. */
struct step {
    bool is_done, is_root;
    uint64_t return_at;
};

/* The canonical frame address. Expressions are those of PLT entries, which look
 * at registers alone. */
static bool
find_cfa(struct walk *w, const struct cpprof__cfi_row *row,
         const struct cpprof__fde *fde, uint64_t *cfa)
{
    static struct cpprof__stack_view nothing;
    uintptr_t value;

    nothing = (struct cpprof__stack_view){.copies_only = true};
    if (row->cfa_reg != CPPROF__CFA_EXPRESSION) {
        if (!(w->regs.known >> row->cfa_reg & 1))
            return false;
        *cfa = w->regs.r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off;
        return true;
    }
    if (!cpprof__cfi_evaluate(&fde->origin, row->cfa_off, &w->regs, &nothing,
                              NULL, &value))
        return false;
    *cfa = value;
    return true;
}

/* The handler of a signal returns here: the kernel kept all registers. */
static struct step
step_signal(struct walk *w)
{
    uint64_t context = w->regs.sp + CPPROF__SIGNAL_UCONTEXT;
    struct cpprof__regs before = {.known = (1ull << CPPROF__N_REGS) - 1};
    unsigned i;

    for (i = 0; i < CPPROF__N_REGS; i++)
        if (!read_word(w, context + cpprof__ucontext_offset(i), &before.r[i]))
            return (struct step){0};
    w->regs = before;
    return (struct step){.is_done = true};
}

static struct step
apply(struct walk *w, const struct cpprof__cfi_row *row,
      const struct cpprof__fde *fde)
{
    struct cpprof__regs caller = w->regs;
    struct step step = {0};
    uint64_t cfa, value;
    unsigned i;

    if (row->rules[CPPROF__REG_PC] == CPPROF__RULE_UNDEFINED)
        return (struct step){.is_done = true, .is_root = true};
    if (!find_cfa(w, row, fde, &cfa) || cfa <= w->regs.sp)
        return step;
    caller.known = KEPT(&w->regs);
    for (i = 0; i < CPPROF__N_RULES; i++) {
        int32_t rule = row->rules[i];
        uint64_t at = cfa + (uint64_t)(int64_t)(rule >> CPPROF__RULE_BITS);

        if (rule == CPPROF__RULE_NONE || rule == CPPROF__RULE_SAME)
            continue;
        caller.known &= ~(1ull << i);
        if ((rule & CPPROF__RULE_MASK) != CPPROF__RULE_AT_CFA ||
            !read_word(w, at, &value))
            continue;
        caller.r[i] = value;
        caller.known |= 1ull << i;
        if (i == CPPROF__REG_PC)
            step.return_at = at;
    }
    caller.sp = cfa;
    caller.known |= 1u << CPPROF__REG_SP;
    step.is_done = caller.known >> CPPROF__REG_PC & 1;
    step.is_root = step.is_done && !caller.pc;
    if (step.is_done)
        w->regs = caller;
    return step;
}

/* Code of the process, in its file; NULL: there are not so many bytes. */
static const uint8_t *
code_at(const struct walk *w, uint64_t pc, size_t n)
{
    return cpprof__image_code(cpprof__image_find(&w->target->images, pc), pc,
                              n);
}

/* Of libc, or of a program that is linked with it or has another. */
static bool
is_signal_return(const struct walk *w)
{
    const uint8_t *code = code_at(w, w->regs.pc, CPPROF__SIGRETURN_BYTES);

    return code ? cpprof__is_sigreturn(code)
                : w->regs.pc == w->target->images.sigreturn;
}

/* From the frame whose code holds pc to its caller. */
static struct step
step_on(struct walk *w, uint64_t pc)
{
    const struct cpprof__image *image =
        cpprof__image_find(&w->target->images, pc);
    struct cpprof__cfi cfi;
    struct cpprof__cfi_row row;
    struct cpprof__fde fde;

    if (is_signal_return(w))
        return step_signal(w);
    if (!image || !image->frames)
        return (struct step){0};
    cfi = (struct cpprof__cfi){.lo = image->data,
                               .hi = image->data + image->n_mapped,
                               .hdr = image->frames};
    if (!cpprof__cfi_find(&cfi, pc + image->delta, &fde) ||
        !cpprof__cfi_run(&fde, pc + image->delta, &row))
        return (struct step){0};
    return apply(w, &row, &fde);
}

static bool
read_of_walk(void *ctx, uint64_t at, uint64_t *value)
{
    return read_word(ctx, at, value);
}

/* The same for a frame of musl; *f is what is known of it. */
static struct step
step_musl(struct walk *w, uint64_t pc, bool is_leaf,
          struct cpprof__musl_frame *f)
{
    struct cpprof__regs *r = &w->regs;
    bool has_fp = r->known >> CPPROF__REG_FP & 1;

    *f = cpprof__musl_frame(&w->target->images, pc, r->sp, has_fp ? r->fp : 0,
                            is_leaf, read_of_walk, w);
    if (f->is_root)
        return (struct step){.is_done = true, .is_root = true};
    if (!f->function)
        return (struct step){0};
    *r = (struct cpprof__regs){.pc = f->return_to,
                               .sp = f->return_at + 8,
                               .fp = f->fp,
                               .known = 1u << CPPROF__REG_PC |
                                        1u << CPPROF__REG_SP |
                                        1u << CPPROF__REG_FP};
    return (struct step){.is_done = true, .return_at = f->return_at};
}

/* ------------------------------------------------------------- verdict ---- */

static bool
is_unsafe(const struct cpprof__images *images, uint64_t pc)
{
    return cpprof__range_has(images->unsafe, images->n_unsafe, pc) ||
           cpprof__range_has(images->never, images->n_never, pc);
}

static bool
is_in_libc(const struct cpprof__images *images, uint64_t pc)
{
    return images->libc &&
           pc - images->libc->lo < images->libc->hi - images->libc->lo;
}

static bool
is_musl(const struct cpprof__images *images, uint64_t pc)
{
    return images->is_musl && is_in_libc(images, pc);
}

static bool
is_nameless(const struct cpprof__images *images, uint64_t pc)
{
    return is_in_libc(images, pc) &&
           !cpprof__range_has(images->named, images->n_named, pc);
}

static struct cpprof__range
widen(struct cpprof__range span, const struct cpprof__range *ranges, size_t n)
{
    while (n-- > 0) {
        if (ranges[n].lo < span.lo)
            span.lo = ranges[n].lo;
        if (ranges[n].hi > span.hi)
            span.hi = ranges[n].hi;
    }
    return span;
}

/* Does no word from here on point where it may not? The thread is held
 * meanwhile, and hardly any word points anywhere near: so few are looked up. */
static bool
words_are_safe(struct walk *w, uint64_t from)
{
    const struct cpprof__images *images = &w->target->images;
    const struct cpprof__range none = {UINT64_MAX, 0},
                               span = widen(widen(none, images->unsafe,
                                                  images->n_unsafe),
                                            images->never, images->n_never);
    uint64_t at = from & -8ull, value;

    for (; at < from + SCAN_BYTES; at += 8) {
        if ((at - w->at >= w->n || w->n - (at - w->at) < 8) &&
            !take_snapshot(w, at))
            return true; /* the end of the stack */
        if (read_word(w, at, &value) && value >= span.lo && value < span.hi &&
            is_unsafe(images, value))
            return false;
    }
    return true;
}

/* Does a stack begin there: a thread's in libc, the first one's in the loader
 * or at the program's entry? */
static bool
is_begin(const struct cpprof__target *target, uint64_t pc)
{
    const struct cpprof__image *image = cpprof__image_find(&target->images, pc);
    const uint64_t *at = (const uint64_t *)target->auxv.data;
    size_t i;

    if (image && (image->is_libc || image->is_loader))
        return true;
    for (i = 0; i + 1 < target->auxv.n / sizeof *at; i += 2)
        if (at[i] == AT_ENTRY)
            return pc - at[i + 1] < ENTRY_BYTES;
    return false;
}

struct cpprof__safety
cpprof__stack_is_safe(const struct cpprof__target *target,
                      const struct user_regs_struct *r, bool is_running)
{
    static struct walk w; /* large, and this program has one thread */
    const struct cpprof__images *images = &target->images;
    struct cpprof__safety safety = {.is_safe = true};
    /* Functions of libc that have no name may hold anything. They count where
     * all frames so far are of libc, and where they have called one that is not
     * safe: nobody would find pthread_join() above munmap(). */
    bool is_in_libc_yet = is_running, was_bad = false, is_inner;
    bool is_waiting = !is_running; /* all so far are of what waits in musl */
    struct cpprof__musl_frame frame;
    uint64_t pc = r->rip, sp;
    bool is_leaf = true; /* it was interrupted where it is */
    bool rises = true;
    unsigned i;

    w.target = target;
    w.regs = (struct cpprof__regs){.rax = r->rax,
                                   .rdx = r->rdx,
                                   .rcx = r->rcx,
                                   .rbx = r->rbx,
                                   .rsi = r->rsi,
                                   .rdi = r->rdi,
                                   .fp = r->rbp,
                                   .sp = r->rsp,
                                   .r8 = r->r8,
                                   .r9 = r->r9,
                                   .r10 = r->r10,
                                   .r11 = r->r11,
                                   .r12 = r->r12,
                                   .r13 = r->r13,
                                   .r14 = r->r14,
                                   .r15 = r->r15,
                                   .pc = r->rip,
                                   .known = (1ull << CPPROF__N_REGS) - 1};
    take_snapshot(&w, r->rsp);
    for (i = 0; i < FRAMES_MAX; i++) {
        bool is_bad = is_unsafe(images, pc);
        struct step step;

        if (cpprof__range_has(images->never, images->n_never, pc))
            return (struct cpprof__safety){0};
        sp = w.regs.sp;
        is_inner = (is_in_libc_yet || was_bad) && is_nameless(images, pc);
        is_in_libc_yet = is_in_libc_yet && is_in_libc(images, pc);
        if (is_musl(images, pc) && !is_signal_return(&w)) {
            step = step_musl(&w, pc, is_leaf, &frame);
            is_bad = step.is_done && !step.is_root &&
                     !cpprof__range_has(images->waits, images->n_waits,
                                        frame.function) &&
                     !(is_waiting && !frame.is_named);
            is_waiting = is_waiting && !frame.is_named;
        } else {
            step = step_on(&w, pc);
            is_waiting = false;
        }
        was_bad = is_bad || is_inner;
        if (was_bad) {
            safety = (struct cpprof__safety){
                .return_at = step.is_root ? 0 : step.return_at,
                .return_to = step.is_root ? 0 : w.regs.pc};
        }
        if (!step.is_done && !words_are_safe(&w, w.regs.sp))
            return (struct cpprof__safety){0};
        if (!step.is_done || step.is_root) {
            safety.may_be_nested =
                !rises || (step.is_done && !is_begin(target, pc));
            return safety;
        }
        rises = rises && w.regs.sp > sp;
        /* The frame of a signal handler goes on where it was interrupted. */
        is_leaf = !step.return_at;
        pc = is_leaf ? w.regs.pc : w.regs.pc - 1;
        is_in_libc_yet |= is_leaf;
    }
    return (struct cpprof__safety){0};
}

/* ------------------------------------------------------ copied stacks ---- */

/* Does a call end before this address? */
static bool
is_return(const struct walk *w, uint64_t address)
{
    const uint8_t *code = code_at(w, address - 8, 8);

    return code && cpprof__ends_in_call(code);
}

/* A function has hardly begun so far behind the address that is called. */
#define FUNCTION_BYTES 4096

/* Is it where a direct call returns to, of the function that has pc? */
static bool
is_return_of(const struct walk *w, uint64_t address, uint64_t pc)
{
    const uint8_t *code = code_at(w, address - 5, 5);
    int32_t distance;

    if (!code || *code != 0xe8)
        return false;
    memcpy(&distance, code + 1, sizeof distance);
    return pc - (address + (uint64_t)(int64_t)distance) < FUNCTION_BYTES;
}

static struct step
go_to(struct walk *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
    w->regs.pc = pc;
    w->regs.sp = sp;
    w->regs.fp = fp;
    w->regs.known =
        1u << CPPROF__REG_PC | 1u << CPPROF__REG_SP | 1u << CPPROF__REG_FP;
    return (struct step){.is_done = true, .return_at = sp - 8};
}

/*
 * Where nothing says how: as code of Go and of others that keep frame pointers.
 * The leaf may have none yet; then its return address is on top, or below the
 * frame pointer that it has pushed. The outermost frame has 0.
 */
static struct step
step_by_pointer(struct walk *w, bool is_leaf)
{
    struct cpprof__regs *r = &w->regs;
    uint64_t top = 0, second = 0, fp = 0, ra = 0;
    bool has_fp = r->known >> CPPROF__REG_FP & 1;

    if (is_leaf && read_word(w, r->sp, &top) && is_return_of(w, top, r->pc))
        return go_to(w, top, r->sp + 8, r->fp);
    if (is_leaf && read_word(w, r->sp + 8, &second) && top == r->fp &&
        is_return_of(w, second, r->pc))
        return go_to(w, second, r->sp + 16, top);
    if (has_fp && !r->fp && !is_leaf)
        return (struct step){.is_done = true, .is_root = true};
    if (has_fp && r->fp >= r->sp && read_word(w, r->fp, &fp) &&
        read_word(w, r->fp + 8, &ra) && (!fp || fp > r->fp) &&
        (is_return(w, ra) || (!fp && code_at(w, ra, 1))))
        return go_to(w, ra, r->fp + 16, fp);
    if (has_fp && !r->fp && is_leaf && !is_return(w, top))
        return (struct step){.is_done = true, .is_root = true};
    return is_leaf && is_return(w, top) ? go_to(w, top, r->sp + 8, r->fp)
                                        : (struct step){0};
}

/* The frames above one that returns to this address, as the kernel found them:
 * they may be on another stack, as those of Go are. */
static size_t
go_on_by_chain(const struct walk *w, const struct cpprof__event *event,
               uint64_t *pcs, size_t max)
{
    uint64_t word = 0;
    size_t i, n = 0;

    for (i = 0; i < event->n_chain; i++) {
        memcpy(&word, event->chain + i * 8, 8);
        if (word == w->regs.pc)
            break;
    }
    while (++i < event->n_chain && n < max) {
        memcpy(&word, event->chain + i * 8, 8);
        if (!code_at(w, word - 1, 1))
            break;
        pcs[n++] = word - 1;
    }
    return n;
}

size_t
cpprof__stack_walk(const struct cpprof__target *target,
                   const struct cpprof__event *event, uint64_t *pcs, size_t max,
                   enum cpprof__stack_end *end)
{
    static struct walk w;
    uint64_t pc = event->regs.pc;
    struct cpprof__musl_frame frame;
    struct step step;
    size_t n = 0, n_more;

    w.target = target;
    w.regs = event->regs;
    w.at = event->regs.sp;
    w.is_copy = true;
    w.n =
        event->n_stack < sizeof w.snapshot ? event->n_stack : sizeof w.snapshot;
    memcpy(w.snapshot, event->stack, w.n);
    for (;;) {
        if (n == max) {
            *end = CPPROF__STACK_CUT;
            return n;
        }
        pcs[n++] = pc;
        w.is_cut = false;
        step = is_musl(&target->images, pc) && !is_signal_return(&w)
                   ? step_musl(&w, pc, n == 1, &frame)
                   : step_on(&w, pc);
        if (!step.is_done)
            step = step_by_pointer(&w, n == 1);
        if (!step.is_done || step.is_root)
            break;
        pc = step.return_at ? w.regs.pc - 1 : w.regs.pc;
    }
    n_more = step.is_done ? 0 : go_on_by_chain(&w, event, pcs + n, max - n);
    n += n_more;
    *end = step.is_root || (n_more && n < max) ? CPPROF__STACK_WHOLE
           : w.is_cut || w.n < 16              ? CPPROF__STACK_CUT
                                               : CPPROF__STACK_BROKEN;
    return n;
}

#else

/* There are no events (events.c), so nothing asks. */
size_t
cpprof__stack_walk(const struct cpprof__target *target,
                   const struct cpprof__event *event, uint64_t *pcs, size_t max,
                   enum cpprof__stack_end *end)
{
    (void)target;
    (void)event;
    (void)max;
    pcs[0] = 0;
    *end = CPPROF__STACK_BROKEN;
    return 1;
}

#endif
