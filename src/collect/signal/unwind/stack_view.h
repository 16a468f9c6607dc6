/* SPDX-License-Identifier: MIT */
/*
 * Reading memory that may not be there. Inside [view->lo, view->hi) a plain
 * load; elsewhere through the kernel, which fails instead of faulting.
 */
#ifndef COLLECT_SIGNAL_STACK_VIEW_H
#define COLLECT_SIGNAL_STACK_VIEW_H

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
    bool copies_only; /* memory of another thread, which may go at any moment:
                       * where the kernel does not copy it, it is not read */
    int memory;       /* a descriptor of /proc/thread-self/mem and 1, or 0: it
                       * copies where process_vm_readv is refused */
};

/*
 * regs->fp when only sp and pc are known, those of a thread that is looked at
 * from outside: no frame is there. Where a link register is known as this it is
 * not known either.
 */
#define CPPROF__UNKNOWN ((uintptr_t)1)

/* Stacks are read across the borders of variables, on purpose. */
#define CPPROF__NO_SANITIZE                                                    \
    __attribute__((no_sanitize("address", "thread", "undefined")))

/* The first `size` addresses from view->lo at which a word may be loaded. */
static inline uintptr_t
stack_span(const struct cpprof__stack_view *view)
{
    uintptr_t n = view->hi - view->lo;

    return view->hi > view->lo && n >= 8 ? n - 7 : 0;
}

/* A word at any alignment; the address is known to be readable. */
CPPROF__NO_SANITIZE static inline uintptr_t
stack_load(uintptr_t at)
{
    typedef uintptr_t __attribute__((may_alias, aligned(1))) word;

    return *(const word *)at;
}

/* n <= 4096 bytes at `at` into the view's window, which begins there. */
bool
cpprof__stack_fetch(struct cpprof__stack_view *view, uintptr_t at, size_t n);

/* The word at an address outside [lo, hi). */
bool
cpprof__stack_read_far(struct cpprof__stack_view *view, uintptr_t at,
                       uintptr_t *value);

/* The word at `at`; false: it cannot be read. */
static inline bool
stack_read(struct cpprof__stack_view *view, uintptr_t at, uintptr_t *value)
{
    if (at - view->lo < stack_span(view)) {
        *value = stack_load(at);
        return true;
    }
    return cpprof__stack_read_far(view, at, value);
}

/* Does process_vm_readv serve, as far as is known? Else memory that goes while
 * it is read is a fault. */
bool
cpprof__stack_view_copies(void);

/* From now on memory is copied by the kernel only where it is another thread's
 * (copies_only): what a thread reads of itself is probed by rt_sigprocmask,
 * which libc needs, too. */
void
cpprof__stack_view_probe_own(void);

/*
 * For tests: behave as where process_vm_readv is refused (by seccomp, or by a
 * kernel without it).
 */
void
cpprof__stack_view_refuse_copy(bool refuse);

#endif
