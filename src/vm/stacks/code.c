/* SPDX-License-Identifier: MIT */
/*
 * Which native code is an interpreter's own. No symbols are needed. A native
 * function that a script calls walks down its own stack. Between it and the
 * caller of the interpreter stand the run loop, which is by far the largest
 * function, and the functions that lead into and out of it. The call-frame
 * information says where functions begin and end.
 */
#include "vm/stacks/interp_frames.h"

#include "arch/regs.h"
#include "collect/signal/unwind/cfi.h"
#include "collect/signal/unwind/module.h"
#include "collect/signal/unwind/unwind.h"

/* Frames of a probe: those of the interpreter and of the host that a probe
 * walks through. */
#define DEPTH 128

/* The limit is stored last: a slot without one is not in use yet. */
static bool
add(struct cpprof__vm_code *codes, uint32_t *n_codes, uint32_t max,
    struct cpprof__vm_code code)
{
    uint32_t i = load_relaxed(n_codes);

    do {
        if (i >= max)
            return false;
    } while (!cas_acq_rel(n_codes, &i, i + 1));
    store_relaxed(&codes[i].start, code.start);
    store_release(&codes[i].limit, code.limit);
    return true;
}

static bool
has(const struct cpprof__vm_code *codes, const uint32_t *n_codes, uintptr_t pc)
{
    uint32_t i, n = load_acquire(n_codes);

    for (i = 0; i < n; i++) {
        uintptr_t limit = load_acquire(&codes[i].limit);

        if (pc < limit && pc >= load_relaxed(&codes[i].start))
            return true;
    }
    return false;
}

bool
cpprof__vm_is_run_loop(const struct cpprof_vm *vm, uintptr_t pc)
{
    return has(vm->run_loops, &vm->n_run_loops, pc);
}

bool
cpprof__vm_is_plumbing(const struct cpprof_vm *vm, uintptr_t pc)
{
    return has(vm->plumbing, &vm->n_plumbing, pc);
}

bool
cpprof__vm_is_collector(const struct cpprof_vm *vm, uintptr_t pc)
{
    return has(vm->collectors, &vm->n_collectors, pc);
}

static bool
function_at(uintptr_t pc, struct cpprof__vm_code *code)
{
    struct cpprof__cfi module = {.view = NULL};
    struct cpprof__fde fde;

    if (!cpprof__module_find(pc, &module) ||
        !cpprof__cfi_find(&module, pc, &fde))
        return false;
    code->start = fde.start;
    code->limit = fde.limit;
    return true;
}

static bool
add_code(struct cpprof_vm *vm, struct cpprof__vm_code code, bool is_run_loop)
{
    return is_run_loop
               ? add(vm->run_loops, &vm->n_run_loops, CPPROF__VM_RUN_LOOPS,
                     code)
               : add(vm->plumbing, &vm->n_plumbing, CPPROF__VM_PLUMBING, code);
}

static bool
learn(struct cpprof_vm *vm, struct cpprof__vm_code code, bool is_run_loop)
{
    return cpprof__vm_is_run_loop(vm, code.start) ||
           cpprof__vm_is_plumbing(vm, code.start) ||
           add_code(vm, code, is_run_loop);
}

/* n_bytes 0: the function that begins at start. */
static bool
add_named(struct cpprof_vm *vm, const void *start, size_t n_bytes,
          bool is_run_loop)
{
    uintptr_t at = (uintptr_t)start;
    struct cpprof__vm_code code = {at, at + n_bytes};

    if (!vm)
        return false;
    if (n_bytes)
        return add_code(vm, code, is_run_loop);
    cpprof__unwind_refresh_modules();
    return function_at(at, &code) && code.start == at &&
           learn(vm, code, is_run_loop);
}

bool
cpprof_vm_add_run_loop(struct cpprof_vm *vm, const void *start, size_t n_bytes)
{
    return add_named(vm, start, n_bytes, true);
}

bool
cpprof_vm_add_plumbing(struct cpprof_vm *vm, const void *start, size_t n_bytes)
{
    return add_named(vm, start, n_bytes, false);
}

/* ---- by example ------------------------------------------------------- */

/* The functions from the one at pcs[0] up to that with outer in it: how many;
 * 0: it is not there, or the way to it is not known. */
static size_t
functions_to(const uintptr_t *pcs, size_t n_pcs, uintptr_t outer,
             struct cpprof__vm_code *codes)
{
    size_t n;

    for (n = 0; n < n_pcs; n++) {
        if (!function_at(pcs[n], &codes[n]))
            return 0;
        if (outer - codes[n].start < codes[n].limit - codes[n].start)
            return n + 1;
    }
    return 0;
}

static size_t
largest_of(const struct cpprof__vm_code *codes, size_t n)
{
    size_t i, largest = 0;

    for (i = 1; i < n; i++)
        if (codes[i].limit - codes[i].start >
            codes[largest].limit - codes[largest].start)
            largest = i;
    return largest;
}

static bool
is_in(uintptr_t pc, uintptr_t function)
{
    struct cpprof__vm_code code;

    return function_at(pc, &code) &&
           function - code.start < code.limit - code.start;
}

/* inner is not on the stack when it ends in the call of this function. */
bool
cpprof_vm_learn_run_loop(struct cpprof_vm *vm, const void *inner,
                         const void *outer)
{
    struct cpprof__stack_view view = {.lo = 0};
    struct cpprof__vm_code codes[DEPTH];
    enum cpprof__unwind_end end;
    struct cpprof__regs regs;
    uintptr_t pcs[DEPTH];
    size_t i, n, largest, skipped = 1; /* this function */

    if (!vm)
        return false;
    cpprof__unwind_refresh_modules();
    cpprof__regs_here(&regs);
    n = cpprof__unwind(&regs, &view, pcs, DEPTH, &end);
    if (n > 1 && is_in(pcs[1], (uintptr_t)inner))
        skipped++;
    if (n <= skipped)
        return false;
    n = functions_to(pcs + skipped, n - skipped, (uintptr_t)outer, codes);
    largest = largest_of(codes, n);
    for (i = 0; i < n; i++)
        if (!learn(vm, codes[i], i == largest))
            return false;
    return n > 0;
}

/* The function that the innermost frame of the run loop has called. */
bool
cpprof_vm_learn_collector(struct cpprof_vm *vm)
{
    struct cpprof__stack_view view = {.lo = 0};
    enum cpprof__unwind_end end;
    struct cpprof__vm_code code;
    struct cpprof__regs regs;
    uintptr_t pcs[DEPTH];
    size_t i, n;

    if (!vm)
        return false;
    cpprof__regs_here(&regs);
    n = cpprof__unwind(&regs, &view, pcs, DEPTH, &end);
    for (i = 0; i < n && !cpprof__vm_is_run_loop(vm, pcs[i]); i++) {
    }
    return i > 0 && i < n && function_at(pcs[i - 1], &code) &&
           !cpprof__vm_is_plumbing(vm, code.start) &&
           (cpprof__vm_is_collector(vm, code.start) ||
            add(vm->collectors, &vm->n_collectors, CPPROF__VM_COLLECTORS,
                code));
}
