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

#include "arch/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What may be read. [lo, hi) is known to be readable for as long as the walk
 * takes, and is read directly; it may be empty. Any other address is copied
 * through the kernel (process_vm_readv), which fails instead of faulting, a
 * window at a time.
 */
struct cpprof__stack_view {
    uintptr_t lo;
    uintptr_t hi;
    uintptr_t window_at; /* address of the copied bytes, 0: none */
    size_t window_n;     /* how many of them are valid */
    uint64_t window[512];
    struct cpprof__regs base; /* the walk's own, to keep it off the stack */
    bool has_handler;         /* found by the walk: a signal handler's frames */
};

/*
 * regs->fp when only sp and pc are known, those of a thread that is looked at
 * from outside: no frame is there. Where a link register is known as this it is
 * not known either.
 */
#define CPPROF__UNKNOWN ((uintptr_t)1)

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

#endif
