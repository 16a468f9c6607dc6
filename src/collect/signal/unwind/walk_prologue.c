/* SPDX-License-Identifier: MIT */
/*
 * From a function of a libc without call-frame information (musl) to its
 * caller.
 *
 * What a function does first says how much it has on the stack. Where it begins
 * is not known; but functions begin at multiples of 16, behind what ends or
 * fills another one. So from the instruction that runs on, such places are
 * tried downwards, and one that puts something on the stack counts if just
 * above that is an address that follows a call.
 */
#include "arch/libc.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/walk.h"

/* Bytes of code that are searched: more than musl's largest function has, but
 * for two or three that call nobody back. */
#define MAX_FUNCTION ((uintptr_t)8 << 10)
/* So many at once. */
#define PIECE ((uintptr_t)2048)
/* Words of arguments, with what aligns them, below a frame. */
#define MAX_ARGUMENTS 4u

/* Is the code of one module with that at pc, or has it information? */
static bool
is_callers(struct cpprof__walk *w, const struct cpprof__cfi *libc, uintptr_t ra)
{
    struct cpprof__fde fde;

    if (!cpprof__walk_is_return(w, ra))
        return false;
    return cpprof__cfi_has_code(libc, ra) || cpprof__walk_find(w, ra - 1, &fde);
}

/* A piece of code, with what is in front of it and a prologue behind, which is
 * in the view's window until a word of the stack or of code is read. */
static bool
fetch_piece(struct cpprof__walk *w, uintptr_t from)
{
    return cpprof__stack_fetch(w->view, from - CPPROF__END_BYTES,
                               CPPROF__END_BYTES + PIECE +
                                   CPPROF__PROLOGUE_MAX);
}

/* By a function that begins like this. */
static bool
go_to(struct cpprof__walk *w, struct cpprof__cursor *at,
      const struct cpprof__cfi *libc, const struct cpprof__prologue *p)
{
    unsigned n = at->interrupted ? 0 : MAX_ARGUMENTS, i;

    for (i = 0; i <= n; i++) {
        uintptr_t slot = at->sp + p->bytes + 8 * i, fp = at->fp, ra;

        if (!stack_read(w->view, slot, &ra))
            return false;
        if (!is_callers(w, libc, ra) ||
            (p->fp_below && !stack_read(w->view, slot - p->fp_below, &fp)))
            continue;
        *at = (struct cpprof__cursor){.ra = ra, .sp = slot + 8, .fp = fp};
        return true;
    }
    return false;
}

/* Try the places in the piece of code that the view's window has. */
static bool
try_piece(struct cpprof__walk *w, struct cpprof__cursor *at,
          const struct cpprof__cfi *libc, uintptr_t from)
{
    const uintptr_t pc = at->ra - 1;
    const uint8_t *code = (const uint8_t *)w->view->window + CPPROF__END_BYTES;
    uintptr_t start;

    for (start = from + PIECE - 16; start >= from; start -= 16) {
        const uint8_t *first = code + (start - from);
        struct cpprof__prologue p;

        if (start > pc || !cpprof__ends_function(first))
            continue;
        p = cpprof__read_prologue(first, pc - start);
        if (!p.bytes)
            continue;
        if (go_to(w, at, libc, &p))
            return true;
        if (!fetch_piece(w, from))
            return false;
    }
    return false;
}

bool
cpprof__walk_prologue(struct cpprof__walk *w, struct cpprof__cursor *at)
{
    uintptr_t from = at->ra - 1, i;
    struct cpprof__cfi libc;

    if (!cpprof__module_find(at->ra - 1, &libc))
        return false;
    from = (from & ~(uintptr_t)15) + 16;
    for (i = 0; i < MAX_FUNCTION; i += PIECE) {
        from -= PIECE;
        if (!fetch_piece(w, from))
            return false;
        if (try_piece(w, at, &libc, from))
            return true;
    }
    return false;
}
