/* SPDX-License-Identifier: MIT */
/*
 * What the run loop keeps in registers. An interpreter may note the buffer
 * where it is only where it has to, and keep it in a register through a call
 * that allocates; the functions below it have saved that, where the call-frame
 * information says. Frames of the run loop hold what has no register.
 */
#include "vm/state/vm.h"

#include "arch/regs.h"
#include "collect/signal/tables/thread.h"
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/stack_view.h"

/* Frames between an allocation and the run loop, at most. */
#define STEPS 64u

/* Not on the stack, which may be small. More at the same time know nothing. */
#define BUFFERS 16u

static struct buffer {
    struct cpprof__stack_view view;
    const void *owner; /* NULL: free */
} buffers[BUFFERS];

static struct buffer *
take_buffer(void)
{
    unsigned i;

    for (i = 0; i < BUFFERS; i++) {
        const void *nobody = NULL;

        if (!load_relaxed(&buffers[i].owner) &&
            cas_acq_rel(&buffers[i].owner, &nobody,
                        (const void *)&cpprof__self))
            return &buffers[i];
    }
    return NULL;
}

/* To the caller. pc is the return address; the byte before it is in the call.
 */
static bool
step(struct cpprof__regs *regs, struct cpprof__stack_view *view, bool is_first)
{
    struct cpprof__cfi module = {NULL, NULL, NULL};
    uintptr_t pc = regs->pc - !is_first;
    struct cpprof__cfi_row row;
    struct cpprof__fde fde;
    bool is_root;

    return cpprof__module_find(pc, &module) &&
           cpprof__cfi_find(&module, pc, &fde) &&
           cpprof__cfi_run(&fde, pc, &row) &&
           cpprof__cfi_step(&row, &fde.origin, regs, view, &is_root) &&
           !is_root && regs->sp > view->lo && regs->sp < view->hi;
}

static bool
find(const struct cpprof_vm *vm, struct cpprof__regs *regs,
     struct cpprof__stack_view *view)
{
    unsigned i;

    for (i = 0; i < STEPS; i++) {
        if (!step(regs, view, i == 0))
            return false;
        if (cpprof__vm_is_run_loop(vm, regs->pc - 1))
            return true;
    }
    return false;
}

static size_t
put_registers(const struct cpprof__regs *regs, uintptr_t *words, size_t max)
{
    size_t i, n = 0;

    for (i = 0; i < CPPROF__N_REGS; i++)
        if ((CPPROF__CALLEE_SAVED & regs->known) >> i & 1 && n < max)
            words[n++] = regs->r[i];
    return n;
}

/* From where its callee's arguments end up to its caller's frame. */
static size_t
put_frame(struct cpprof__regs regs, struct cpprof__stack_view *view,
          uintptr_t *words, size_t max)
{
    uintptr_t at = regs.sp;
    size_t n = 0;

    if (!step(&regs, view, false))
        return 0;
    for (; at + sizeof *words < regs.sp && n < max; at += sizeof *words)
        if (!stack_read(view, at, &words[n++]))
            return n - 1;
    return n;
}

size_t
cpprof_vm_run_loop_words(const struct cpprof_vm *vm, const void *high,
                         uintptr_t *words, size_t max)
{
    struct buffer *buffer = take_buffer();
    struct cpprof__regs regs;
    size_t n = 0;

    if (!buffer)
        return 0;
    cpprof__regs_here(&regs);
    buffer->view.lo = regs.sp;
    buffer->view.hi = (uintptr_t)high;
    buffer->view.window_n = 0;
    if (find(vm, &regs, &buffer->view)) {
        n = put_registers(&regs, words, max);
        n += put_frame(regs, &buffer->view, words + n, max - n);
    }
    store_release(&buffer->owner, NULL);
    return n;
}

void
cpprof__vm_registers_left(void)
{
    unsigned i;

    for (i = 0; i < BUFFERS; i++)
        if (load_relaxed(&buffers[i].owner) == &cpprof__self)
            store_release(&buffers[i].owner, NULL);
}

void
cpprof__vm_registers_forked(void)
{
    unsigned i;

    for (i = 0; i < BUFFERS; i++)
        buffers[i].owner = NULL;
}
