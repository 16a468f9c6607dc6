/* SPDX-License-Identifier: MIT */
/*
 * One walk up a stack, as the parts of the unwinder share it.
 *
 * Three ways lead from a frame to its caller, each a little wider and slower:
 *
 *   by row     sp and fp alone, by a cached row (unwind.c). A few ns.
 *   in full    all registers, by the call-frame information (walk_full.c).
 *              For CFAs on other registers, expressions and signal frames.
 *   by guess   frame pointers, where there is no information (walk_guess.c).
 *
 * The first follows only sp and fp. When a frame needs more, the registers are
 * brought up from the last frame where all of them were known (`base`), so that
 * the common case never pays for the rare one.
 */
#ifndef COLLECT_SIGNAL_WALK_H
#define COLLECT_SIGNAL_WALK_H

#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/row_cache.h"
#include "collect/signal/unwind/stack_view.h"

/* No code is below the first page or above the user half of the addresses. */
#define CPPROF__PC_MIN ((uintptr_t)4096)
#define CPPROF__PC_MAX ((uintptr_t)1 << 56)

enum cpprof__step {
    CPPROF__STEP_ON,     /* the caller is now the current frame */
    CPPROF__STEP_ROOT,   /* there is no caller */
    CPPROF__STEP_BROKEN, /* no way on */
    CPPROF__STEP_JUNK    /* nor is the current frame one: it is not code */
};

/* A frame as far as the way by row follows it. */
struct cpprof__cursor {
    uintptr_t ra; /* where the frame goes on; of an interrupted one, pc + 1:
                   * the byte before it is inside the instruction that runs */
    uintptr_t sp;
    uintptr_t fp;
    bool interrupted; /* the frame may not have saved anything yet */
    bool sp_guessed;  /* sp is only a lower bound */
    bool by_jump;     /* code made at run time, which a callee returns to
                       * though it did not call it */
};

struct cpprof__walk {
    struct cpprof__stack_view *view;
    uint32_t generation;
    uint16_t switches_left; /* how often the stack may still change */
    bool base_interrupted;
    struct cpprof__cfi module; /* the last one found; no code: none */
    struct cpprof__cursor at;
    uint32_t n;                /* frames below the current one */
    uint32_t base_n;           /* frames below that of base */
    struct cpprof__regs *base; /* in the view */
};

static inline bool
cpprof__is_pc(uintptr_t pc)
{
    return pc - CPPROF__PC_MIN < CPPROF__PC_MAX - CPPROF__PC_MIN;
}

/*
 * May the caller's stack pointer be `sp`, when the frame's is `from`? On one
 * stack it grows; only a frame that was interrupted may have nothing on it. A
 * frame that runs on another stack than its caller may go down, outside what
 * the view knows to be one stack, and only so often.
 */
bool
cpprof__walk_accepts(struct cpprof__walk *w, uintptr_t from, bool interrupted,
                     uintptr_t sp);

/* The FDE of pc. */
bool
cpprof__walk_find(struct cpprof__walk *w, uintptr_t pc,
                  struct cpprof__fde *fde);

/* Is ra, probably, where a call returns to? */
bool
cpprof__walk_is_return(struct cpprof__walk *w, uintptr_t ra);

/* From the current frame to its caller, with all registers. *in_signal: the
 * current frame is the one that signal handlers return to. */
enum cpprof__step
cpprof__walk_full(struct cpprof__walk *w, bool *in_signal);

/* The same, from the code that a signal handler returns to. */
enum cpprof__step
cpprof__walk_sigreturn(struct cpprof__walk *w);

/*
 * From frame *at, which has no call-frame information, to its caller. link is
 * the link register where that is known, else 0.
 */
enum cpprof__step
cpprof__walk_guess(struct cpprof__walk *w, struct cpprof__cursor *at,
                   uintptr_t link);

/*
 * The same for a function that begins as compilers have it, of a libc without
 * information.
 */
bool
cpprof__walk_prologue(struct cpprof__walk *w, struct cpprof__cursor *at);

/*
 * The frame pointer of the current frame, when it is not known (looked at from
 * outside) and the frame is found by it: from what the function does first.
 * base then is the current frame.
 */
bool
cpprof__walk_find_fp(struct cpprof__walk *w, uintptr_t *fp);

#endif
