/* SPDX-License-Identifier: MIT */
/*
 * Stacks for the tests of the unwinder: what may be read of them, a walk of
 * the caller's own, and the truth to hold it against: return addresses that
 * the compiler hands out, or what libgcc's unwinder says.
 */
#ifndef UNWIND_FIXTURE_H
#define UNWIND_FIXTURE_H

#include "arch/regs.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/stack_view.h"
#include "collect/signal/unwind/unwind.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

/* clang-format off */
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#define MAX_FRAMES 512
#define NOINLINE   __attribute__((noinline, noclone))

/* Keep a call from being the last thing a function does. */
#define NOT_A_TAIL_CALL() __asm__ volatile("" ::: "memory")

struct walk {
    uintptr_t pcs[MAX_FRAMES];
    size_t n;
    enum cpprof__unwind_end end;
};

static inline const char *
end_name(enum cpprof__unwind_end end)
{
    static const char *const names[] = {"ROOT", "DEPTH", "BROKEN"};

    return names[end];
}

/* The stack of the calling thread. */
static inline void
own_stack(uintptr_t *lo, uintptr_t *hi)
{
    pthread_attr_t attributes;
    void *start;
    size_t n;

    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstack(&attributes, &start, &n), 0);
    pthread_attr_destroy(&attributes);
    *lo = (uintptr_t)start;
    *hi = *lo + n;
}

/* All of a stack from sp on is known to be readable, or nothing is. */
static inline struct cpprof__stack_view
view_from(uintptr_t sp, uintptr_t hi)
{
    struct cpprof__stack_view view = {0};

    view.lo = sp;
    view.hi = hi;
    return view;
}

static inline void
walk_regs(struct walk *walk, const struct cpprof__regs *regs,
          struct cpprof__stack_view *view, size_t max)
{
    walk->n = cpprof__unwind(regs, view, walk->pcs, max, &walk->end);
}

/* The caller's stack, from inside the caller. */
#define walk_here(walk, direct)                                                \
    do {                                                                       \
        struct cpprof__regs regs_;                                             \
        struct cpprof__stack_view view_ = {0};                                 \
        uintptr_t lo_;                                                         \
        uintptr_t hi_;                                                         \
                                                                               \
        own_stack(&lo_, &hi_);                                                 \
        cpprof__regs_here(&regs_);                                             \
        if (direct && regs_.sp >= lo_ && regs_.sp < hi_)                       \
            view_ = view_from(regs_.sp, hi_);                                  \
        walk_regs((walk), &regs_, &view_, MAX_FRAMES);                         \
    } while (0)

/* The address that the calling function returns to, as the walk shows it. */
#define RETURNS_TO()                                                           \
    ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)) - 1)

/* libgcc's walk of the caller. */
static inline _Unwind_Reason_Code
on_libgcc_frame(struct _Unwind_Context *context, void *arg)
{
    struct walk *walk = arg;
    int before = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &before);

    if (pc == 0 || walk->n == MAX_FRAMES)
        return _URC_END_OF_STACK;
    walk->pcs[walk->n++] = before ? pc : pc - 1;
    return _URC_NO_REASON;
}

static inline void
walk_libgcc(struct walk *walk)
{
    walk->n = 0;
    _Unwind_Backtrace(on_libgcc_frame, walk);
}

/* Drop the frames before pc: what libgcc saw of the handler itself. */
static inline void
begin_at(struct walk *walk, uintptr_t pc)
{
    size_t i = 0;

    while (i < walk->n && walk->pcs[i] != pc)
        i++;
    walk->n -= i;
    memmove(walk->pcs, walk->pcs + i, walk->n * sizeof *walk->pcs);
}

static inline void
print_walks(const struct walk *a, const struct walk *b)
{
    size_t i;

    for (i = 0; i < a->n || i < b->n; i++)
        printf("# %3zu %16lx %16lx\n", i, i < a->n ? a->pcs[i] : 0ul,
               i < b->n ? b->pcs[i] : 0ul);
}

#endif
