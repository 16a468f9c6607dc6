/* SPDX-License-Identifier: MIT */
/*
 * The unwinder: from the registers of an interrupted (or of this very) piece
 * of code to its call stack, by DWARF call-frame information with frame
 * pointers as the fallback. Runs inside signal handlers and malloc hooks:
 * takes no lock, allocates nothing, does not enter the loader, keeps errno,
 * needs less than 1 KiB of stack.
 */
#ifndef COLLECT_SIGNAL_UNWIND_H
#define COLLECT_SIGNAL_UNWIND_H

#include "collect/signal/unwind/stack_view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a walk ended. */
enum cpprof__unwind_end {
    CPPROF__UNWIND_ROOT,   /* the outermost frame: _start, clone, coroutine */
    CPPROF__UNWIND_DEPTH,  /* max frames were found and there are more */
    CPPROF__UNWIND_BROKEN, /* no way on: no CFI and no frame pointer, or the
                            * stack cannot be read or does not make sense */
};

/*
 * Walk the stack of regs and store up to max program counters, leaf first.
 * Each is an address inside the instruction it stands for: the leaf and frames
 * that a signal interrupted as they are, callers as return address - 1, so that
 * all of them can be looked up unchanged. At least one is stored when max > 0.
 *
 * Returns how many were stored; *end says why no more.
 * Safety: AS-READY.
 */
size_t
cpprof__unwind(const struct cpprof__regs *regs, struct cpprof__stack_view *view,
               uintptr_t *pcs, size_t max, enum cpprof__unwind_end *end);

/*
 * Call outside handlers: before the first walk, and now and then afterwards.
 * Where libc has no _dl_find_object, publishes a new table of modules.
 * Safety: MT. Takes the loader's lock.
 */
void
cpprof__unwind_refresh_modules(void);

/*
 * A module was unloaded: addresses may soon mean other code, so cached rows
 * are void. Safety: AS.
 */
void
cpprof__unwind_forget(void);

/*
 * Where libc calls the program, for a libc whose code has no call-frame
 * information (musl): what called main() is just below the stack pointer that
 * the process began with, and what called a thread's start routine is always
 * the same place. In all others these frames are found by their rows. 0: not
 * known.
 */
extern struct cpprof__outermost {
    uintptr_t main_sp;
    uintptr_t starts[2]; /* of pthread_create(), of thrd_create() */
} cpprof__outermost;

#endif
