/* SPDX-License-Identifier: MIT */
/*
 * Steps where there is no call-frame information: code made at run time, and
 * assembly without it.
 *
 * The frame pointer is believed when it points at a frame record on the way up
 * the stack whose return address follows a call instruction. A leaf may not
 * have made a record, or never makes one; then the return address is where the
 * call put it, or in the words above, where a leaf of assembly has pushed a few
 * registers.
 *
 * Interpreters made at run time (the JVM's) jump to what they call, and give it
 * an address of theirs to return to. So in code of no module a record counts,
 * too, whose return address is in code of no module, if the records above it
 * lead to one that follows a call.
 *
 * Go's assembly calls C on the stack of the thread, and has there the frame
 * pointer of its caller, which is on a goroutine's. The records of a goroutine
 * end with one that holds no frame pointer, and returns to code that did not
 * call (goexit).
 */
#include "arch/atomic.h"
#include "arch/libc.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/unwind.h"
#include "collect/signal/unwind/walk.h"

/* Bytes from a frame's sp to its frame record. A frame of run-time-made code
 * is smaller; a stale fp usually points further. */
#define MAX_FRAME ((uintptr_t)1 << 20)

/* Words above a leaf's sp where its return address may be. More finds it
 * above larger frames, and is wrong more often: it then finds an address that
 * an earlier call left behind. */
#define MAX_PUSHED 32
/* How far a function of a libc without information is from those of libc that
 * it calls, at most, in bytes: they are of one source file. More takes a call
 * that is over for one that goes on. */
#define NEAR ((uintptr_t)8 << 10)

/* The most frames of an interpreter that are gone through, again for each, to
 * the one that was called. More: deeper recursion in it has its callers; each
 * costs some loads. */
#define MAX_JUMPS 256

/* Bytes that libc's frames in front of main() take, at most: three of musl's
 * take less than 100. */
#define OUTERMOST_FRAMES 256

/* Is there call-frame information for the code before ra, which follows a
 * call? Then it is hardly a number that happens to be there. */
static bool
is_described_return(struct cpprof__walk *w, uintptr_t ra)
{
    struct cpprof__fde fde;

    return cpprof__walk_is_return(w, ra) && cpprof__walk_find(w, ra - 1, &fde);
}

static bool
fetch(struct cpprof__walk *w, uintptr_t at, void *to, size_t n)
{
    if (!cpprof__stack_fetch(w->view, at, n))
        return false;
    __builtin_memcpy(to, w->view->window, n);
    return true;
}

/* Where the call in front of ra leads, by itself or through the program's table
 * of linked functions; 0: not known. */
static uintptr_t
called_by(struct cpprof__walk *w, uintptr_t ra)
{
    uint8_t code[CPPROF__STUB_BYTES];
    uintptr_t target, slot, called;

    if (!fetch(w, ra - 6, code, 6))
        return 0;
    target = cpprof__call_target(code + 1, ra);
    if (!target)
        slot = cpprof__target_slot(code, ra - 6, true);
    else if (fetch(w, target, code, sizeof code))
        slot = cpprof__target_slot(code, target, false);
    else
        return 0;
    if (!slot)
        return target;
    return fetch(w, slot, &called, sizeof called) ? called : 0;
}

/*
 * May ra be where the code around pc returns to? A libc without information has
 * frames of any size, and in them lie return addresses of calls that are over.
 * So there a call has to be seen that leads to that code; and those of our
 * handler, which was on the same stack, do not count.
 */
static bool
may_have_called(struct cpprof__walk *w, uintptr_t ra, uintptr_t pc)
{
    struct cpprof__cfi libc, own;

    if (CPPROF__LIBC_HAS_ROWS || CPPROF__REG_LINK >= 0 ||
        !cpprof__module_find(pc, &libc))
        return is_described_return(w, ra);
    if (!cpprof__walk_is_return(w, ra) ||
        (!cpprof__cfi_has_code(&libc, ra) && !is_described_return(w, ra)) ||
        (cpprof__module_find((uintptr_t)cpprof__walk_guess, &own) &&
         cpprof__cfi_has_code(&own, ra)))
        return false;
    return pc - called_by(w, ra) + NEAR < 2 * NEAR;
}

/* The caller's frame, when the return address was found at `at`. */
static void
go_to(struct cpprof__cursor *at, uintptr_t ra, uintptr_t sp, uintptr_t fp)
{
    *at = (struct cpprof__cursor){.ra = ra, .sp = sp, .fp = fp};
}

/* The call has just happened: nothing is on the stack but what it left. */
static bool
guess_entry(struct cpprof__walk *w, struct cpprof__cursor *at, uintptr_t link)
{
    uintptr_t ra = link;

    if (CPPROF__REG_LINK < 0 && !stack_read(w->view, at->sp, &ra))
        return false;
    if (!may_have_called(w, ra, at->ra))
        return false;
    go_to(at, ra, at->sp + (CPPROF__REG_LINK < 0 ? 8 : 0), at->fp);
    return true;
}

/* What a frame record at fp says, which is on the way up from sp: the caller's
 * fp, the return address. */
static bool
read_record(struct cpprof__walk *w, uintptr_t sp, uintptr_t fp, uintptr_t *next,
            uintptr_t *ra)
{
    if (fp % 8 != 0 || fp - sp >= MAX_FRAME || !stack_read(w->view, fp, next) ||
        !stack_read(w->view, fp + 8, ra))
        return false;
    *ra = cpprof__strip_return_address(*ra);
    return true;
}

/* Is this, as far as can be told, code made at run time? */
static bool
is_in_no_module(struct cpprof__walk *w, uintptr_t pc)
{
    struct cpprof__cfi module;

    return cpprof__is_pc(pc) && !cpprof__module_find(pc, &module) &&
           cpprof__stack_fetch(w->view, pc, 1);
}

/* Do the records from fp on lead to a return address that follows a call? */
static bool
leads_to_return(struct cpprof__walk *w, uintptr_t sp, uintptr_t fp)
{
    unsigned i;

    for (i = 0; i < MAX_JUMPS; i++) {
        uintptr_t next;
        uintptr_t ra;

        if (!read_record(w, sp, fp, &next, &ra) || !cpprof__is_pc(ra))
            return false;
        if (cpprof__walk_is_return(w, ra))
            return true;
        sp = fp + 16;
        fp = next;
    }
    return false;
}

/* Is it what a goroutine's first function returns to? */
static bool
is_goexit(struct cpprof__walk *w, uintptr_t fp, uintptr_t ra)
{
    return fp == 0 && cpprof__is_pc(ra) &&
           cpprof__stack_fetch(w->view, ra - 1, CPPROF__GOEXIT_BYTES) &&
           cpprof__is_goexit((const uint8_t *)w->view->window);
}

/* Do the records from fp on, wherever they are, lead to the end of a goroutine,
 * or to C that has called Go? A list of a program's own, whose members hold
 * return addresses as those of coroutines do, looks like records as well. */
static bool
leads_to_goroutine(struct cpprof__walk *w, uintptr_t fp)
{
    uintptr_t seen = 0;
    unsigned i;

    for (i = 0; i < MAX_JUMPS && fp != seen; i++) {
        uintptr_t next;
        uintptr_t ra;

        if (!read_record(w, fp, fp, &next, &ra))
            return false;
        if (is_goexit(w, next, ra) || is_described_return(w, ra))
            return true;
        if (!cpprof__walk_is_return(w, ra))
            return false;
        if ((i & (i + 1)) == 0) /* a ring comes back to one of these */
            seen = fp;
        fp = next;
    }
    return false;
}

/* What a record on another stack says: one of this module's functions has
 * called the frame, and called it here. */
static bool
read_far_record(struct cpprof__walk *w, const struct cpprof__cursor *at,
                uintptr_t *next, uintptr_t *ra)
{
    struct cpprof__cfi module;

    if (at->interrupted || w->switches_left == 0 ||
        !cpprof__module_find(at->ra - 1, &module) ||
        !read_record(w, at->fp, at->fp, next, ra) ||
        !cpprof__cfi_has_code(&module, *ra) || !leads_to_goroutine(w, at->fp))
        return false;
    w->switches_left--;
    return true;
}

/* By the frame's own record. */
static bool
guess_record(struct cpprof__walk *w, struct cpprof__cursor *at, bool *root)
{
    uintptr_t fp = at->fp;
    uintptr_t next;
    uintptr_t ra;
    bool by_jump;

    if (!read_record(w, at->sp, fp, &next, &ra) &&
        !read_far_record(w, at, &next, &ra))
        return false;
    *root = ra == 0 && next == 0;
    if (*root) /* or nothing that is a record */
        return CPPROF__LIBC_HAS_ROWS;
    by_jump = !cpprof__walk_is_return(w, ra);
    if (by_jump && !is_goexit(w, next, ra) &&
        (!is_in_no_module(w, at->ra - 1) || !is_in_no_module(w, ra) ||
         !leads_to_return(w, fp + 16, next)))
        return false;
    go_to(at, ra, fp + 16, next);
    at->sp_guessed = !CPPROF__FP_GIVES_SP;
    at->by_jump = by_jump;
    return true;
}

/* The caller's fp, when a leaf has pushed n words: its own, unless that leads
 * nowhere and one of the words does lead to a frame record. */
static uintptr_t
find_pushed_fp(struct cpprof__walk *w, const struct cpprof__cursor *at,
               unsigned n)
{
    uintptr_t fp = at->fp;
    unsigned i;

    for (i = 0; i <= n; i++) {
        uintptr_t next;
        uintptr_t ra;

        if (read_record(w, at->sp + 8 * n, fp, &next, &ra) &&
            cpprof__walk_is_return(w, ra))
            return fp;
        if (!stack_read(w->view, at->sp + 8 * i, &fp))
            break;
    }
    return at->fp;
}

/* Above a few pushed registers. */
static bool
guess_pushed(struct cpprof__walk *w, struct cpprof__cursor *at)
{
    unsigned i;

    for (i = 1; i < MAX_PUSHED; i++) {
        uintptr_t ra;

        if (!stack_read(w->view, at->sp + 8 * i, &ra))
            return false;
        if (may_have_called(w, ra, at->ra)) {
            go_to(at, ra, at->sp + 8 * i + 8, find_pushed_fp(w, at, i));
            return true;
        }
    }
    return false;
}

struct cpprof__outermost cpprof__outermost;

/* Is it libc's code that has called the program? */
static bool
is_outermost(const struct cpprof__cursor *at)
{
    const struct cpprof__outermost *o = &cpprof__outermost;

    return !CPPROF__LIBC_HAS_ROWS && !at->interrupted &&
           (load_relaxed(&o->main_sp) - at->sp < OUTERMOST_FRAMES ||
            at->ra == load_relaxed(&o->starts[0]) ||
            at->ra == load_relaxed(&o->starts[1]));
}

enum cpprof__step
cpprof__walk_guess(struct cpprof__walk *w, struct cpprof__cursor *at,
                   uintptr_t link)
{
    bool root = false;

    /* From here on the frames may be none, of code that another thread is
     * just unloading. */
    w->module.view = w->view;
    if (is_outermost(at))
        return CPPROF__STEP_ROOT;
    if (at->interrupted && guess_entry(w, at, link))
        return CPPROF__STEP_ON;
    if (!CPPROF__LIBC_HAS_ROWS && cpprof__walk_prologue(w, at))
        return CPPROF__STEP_ON;
    if (guess_record(w, at, &root))
        return root ? CPPROF__STEP_ROOT : CPPROF__STEP_ON;
    if (at->interrupted && CPPROF__REG_LINK < 0 && guess_pushed(w, at))
        return CPPROF__STEP_ON;
    /* The ABI marks the outermost frame with a frame pointer of 0. */
    if (CPPROF__LIBC_HAS_ROWS && !at->interrupted && at->fp == 0)
        return CPPROF__STEP_ROOT;
    return CPPROF__STEP_BROKEN;
}

bool
cpprof__walk_find_fp(struct cpprof__walk *w, uintptr_t *fp)
{
    struct cpprof__fde fde;
    uintptr_t ra, at;
    int32_t n;

    if (w->at.sp_guessed || !cpprof__walk_find(w, w->at.ra - 1, &fde) ||
        !cpprof__stack_fetch(w->view, fde.start, CPPROF__PROLOGUE_BYTES))
        return false;
    n = cpprof__prologue_frame((const uint8_t *)w->view->window);
    at = w->at.sp + (uintptr_t)(intptr_t)n;
    if (n < 0 || at % 16 != 0 || !stack_read(w->view, at + 8, &ra) ||
        !cpprof__walk_is_return(w, cpprof__strip_return_address(ra)))
        return false;
    *w->base = (struct cpprof__regs){.known = 1ull << CPPROF__REG_FP |
                                              1ull << CPPROF__REG_SP |
                                              1ull << CPPROF__REG_PC};
    w->base->pc = w->at.ra - w->at.interrupted;
    w->base->sp = w->at.sp;
    w->base->fp = w->at.fp = *fp = at;
    w->base_n = w->n;
    w->base_interrupted = w->at.interrupted;
    return true;
}
