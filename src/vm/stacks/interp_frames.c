/* SPDX-License-Identifier: MIT */
/*
 * Mixed stacks: in a native stack, the frames of a run loop are replaced by
 * those of the script that it runs. Each activation of the run loop, from the
 * root on, gets the script frames from one that is marked as an entry up to the
 * next such frame.
 *
 * An interpreter that can be asked in a handler is asked there. For any other
 * the native stack is deferred (deferred_stacks.c) until the interpreter comes
 * to a safepoint, which it does before it executes another instruction, so that
 * both fit together.
 */
#include "vm/stacks/interp_frames.h"

#include "arch/place.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/signal/tables/scripts.h"
#include "collect/signal/tables/thread.h"
#include "collect/store/script_file.h"
#include "vm/stacks/deferred_stacks.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A bit that marks an entry in a script's word, until that goes into a stack.
 */
#define ENTRY ((uintptr_t)1 << 62)

/* Tunable: working buffers, because the stack of a signal handler or a
 * coroutine may be small. It bounds how many stacks are merged at the same
 * time: a hook waits a moment for one, and others say that the script was not
 * read. */
#define BUFFERS 16u
#define TURNS   100u /* of the processor, which who has a buffer may need */

struct buffer {
    uintptr_t native[CPPROF__MAX_DEPTH + 2];
    uintptr_t script[CPPROF__MAX_DEPTH];
};
static struct buffer buffers[BUFFERS] CPPROF__LARGE;
static const void *owners[BUFFERS] CPPROF__LARGE; /* NULL: free */
static bool were_taken;                           /* some, once */

static struct buffer *
take_buffer(void)
{
    unsigned i;

    store_relaxed(&were_taken, true);
    for (i = 0; i < BUFFERS; i++) {
        const void *nobody = NULL;

        if (!load_relaxed(&owners[i]) &&
            cas_acq_rel(&owners[i], &nobody, (const void *)&cpprof__self))
            return &buffers[i];
    }
    return NULL;
}

/* The same in a hook, which may wait. */
static struct buffer *
wait_for_buffer(void)
{
    struct buffer *buffer = take_buffer();
    unsigned i;

    for (i = 0; !buffer && i < TURNS; i++) {
        syscall(SYS_sched_yield);
        buffer = take_buffer();
    }
    return buffer;
}

static void
give_buffer(const struct buffer *buffer)
{
    store_release(&owners[buffer - buffers], NULL);
}

/* ---- the script's frames ---------------------------------------------- */

struct peeking {
    const struct cpprof_vm *vm;
    uintptr_t *script;
    size_t n;
    size_t max; /* more would be cut off */
    size_t n_entries;
    bool has_unnamed;
};

static const char *
text_of(const char *text)
{
    return text ? text : "";
}

uintptr_t
cpprof__vm_word_of(const struct cpprof_vm *vm,
                   const struct cpprof_vm_peek *frame)
{
    const struct cpprof_vm_function *function = &frame->function;
    const struct cpprof__script_location location = {
        .mapping = vm->mapping,
        .name = text_of(function->name),
        .system_name = text_of(function->system_name),
        .file = text_of(function->file),
        .start_line = function->start_line,
        .line = frame->line > 0 ? frame->line : 0,
        .key = frame->key,
        .has_name = !(frame->flags & CPPROF_VM_UNNAMED),
    };

    return cpprof__scripts_add(&cpprof__scripts, &location);
}

static bool
add_frame(void *ctx, const struct cpprof_vm_peek *frame)
{
    struct peeking *p = ctx;
    bool is_entry = frame->flags & CPPROF_VM_ENTRY;
    uintptr_t word = cpprof__vm_word_of(p->vm, frame);

    p->has_unnamed |= !!(frame->flags & CPPROF_VM_UNNAMED);
    p->n_entries += is_entry;
    p->script[p->n++] = word | (is_entry ? ENTRY : 0);
    return p->n < p->max;
}

static void
peek(struct peeking *p, const struct cpprof_vm *vm, struct cpprof__vm_thread *t,
     uintptr_t *script, size_t max)
{
    if (max > CPPROF__MAX_DEPTH)
        max = CPPROF__MAX_DEPTH;
    *p = (struct peeking){.vm = vm, .script = script, .max = max};
    vm->ops.peek(t ? t->thread : NULL, add_frame, p);
}

/* ---- both together ---------------------------------------------------- */

struct mixing {
    const struct cpprof_vm *vm;
    const struct peeking *script;
    size_t taken; /* of the script's frames */
    uintptr_t *out;
    size_t n;
    size_t max;
    bool is_cut;
};

static void
put(struct mixing *m, uintptr_t word)
{
    if (m->n < m->max)
        m->out[m->n++] = word;
    else
        m->is_cut = true;
}

/* The frames of one activation; all: of those that are left. */
static void
put_script(struct mixing *m, bool all)
{
    bool is_entry = false;

    while (m->taken < m->script->n && (all || !is_entry)) {
        uintptr_t word = m->script->script[m->taken++];

        is_entry = word & ENTRY;
        put(m, word & ~ENTRY);
    }
}

static uintptr_t
word_of_collector(const struct cpprof_vm *vm)
{
    static const struct cpprof__script_location collector = {
        .name = "[garbage collection]",
        .system_name = "",
        .file = "",
        .has_name = true,
    };
    struct cpprof__script_location location = collector;

    location.mapping = vm->mapping;
    return cpprof__scripts_add(&cpprof__scripts, &location);
}

static void
put_native(struct mixing *m, uintptr_t pc)
{
    if (cpprof__vm_is_collector(m->vm, pc))
        put(m, word_of_collector(m->vm));
    else if (!cpprof__vm_is_plumbing(m->vm, pc))
        put(m, pc);
}

/* Where the activations cannot be told apart, they are one: what is native
 * between them is left out. */
static void
put_all(struct mixing *m, const uintptr_t *pcs, size_t n, size_t n_loops)
{
    bool is_one = n_loops != m->script->n_entries;
    size_t i, n_seen = 0;

    for (i = 0; i < n; i++) {
        if (!cpprof__vm_is_run_loop(m->vm, pcs[i])) {
            if (!is_one || n_seen == 0 || n_seen == n_loops)
                put_native(m, pcs[i]);
            continue;
        }
        if (!is_one || !n_seen)
            put_script(m, is_one);
        if (++n_seen == n_loops)
            put_script(m, true); /* what the host itself is to the script */
    }
}

static size_t
count_loops(const struct cpprof_vm *vm, const uintptr_t *pcs, size_t n)
{
    size_t i, n_loops = 0;

    for (i = 0; i < n; i++)
        n_loops += cpprof__vm_is_run_loop(vm, pcs[i]);
    return n_loops;
}

/* Put both together into pcs; native is a copy of what is there. */
static void
splice_in(const struct peeking *script, const uintptr_t *native, size_t *n,
          uintptr_t *pcs, size_t max, enum cpprof__unwind_end *end)
{
    struct mixing m = {
        .vm = script->vm, .script = script, .out = pcs, .max = max};

    put_all(&m, native, *n, count_loops(script->vm, native, *n));
    *n = m.n;
    if (m.is_cut)
        *end = CPPROF__UNWIND_DEPTH;
}

/* ---- samplers and allocations ----------------------------------------- */

static enum cpprof__interp_result
put_together(const struct peeking *script, struct buffer *buffer,
             uintptr_t *pcs, size_t *n, size_t max,
             enum cpprof__unwind_end *end)
{
    if (script->n) {
        memcpy(buffer->native, pcs, *n * sizeof *pcs);
        splice_in(script, buffer->native, n, pcs, max, end);
    }
    give_buffer(buffer);
    return script->n ? CPPROF__INTERP_MERGED : CPPROF__INTERP_NONE;
}

/* The run loops say where the script's frames would be. */
static enum cpprof__interp_result
leave_unread(const struct cpprof_vm *vm, uintptr_t *pcs, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (cpprof__vm_is_run_loop(vm, pcs[i]))
            pcs[i] = CPPROF__FRAME_NO_SCRIPT;
    return CPPROF__INTERP_MERGED;
}

static enum cpprof__interp_result
merge_blocked(int32_t tid, uintptr_t *pcs, size_t *n, size_t max,
              enum cpprof__unwind_end *end)
{
    const struct cpprof_vm *vm = cpprof__vm_first();
    struct peeking script;
    struct buffer *buffer;

    while (vm && (!vm->ops.peek_asleep || !count_loops(vm, pcs, *n)))
        vm = vm->next;
    if (!vm || *n > CPPROF__MAX_DEPTH + 2 || !(buffer = take_buffer()))
        return CPPROF__INTERP_NONE;
    script = (struct peeking){
        .vm = vm, .script = buffer->script, .max = CPPROF__MAX_DEPTH};
    vm->ops.peek_asleep(tid, add_frame, &script);
    return put_together(&script, buffer, pcs, n, max, end);
}

static enum cpprof__interp_result
mix_one(const struct cpprof_vm *vm, uintptr_t *pcs, size_t *n, size_t max,
        enum cpprof__unwind_end *end, bool is_handler)
{
    bool is_safe = vm->ops.flags & CPPROF_VM_SIGNAL_SAFE;
    struct cpprof__vm_thread *t = cpprof__vm_inside(cpprof__vm_entered());
    struct peeking script;
    struct buffer *buffer;

    if (t && t->vm != vm)
        t = NULL; /* what the calling thread runs of vm is not known */
    if ((!t && !is_safe) || (t && t->is_busy) || !count_loops(vm, pcs, *n))
        return CPPROF__INTERP_NONE;
    if (is_handler && !is_safe)
        return CPPROF__INTERP_LATER;
    buffer = is_handler ? take_buffer() : wait_for_buffer();
    if (!buffer)
        return leave_unread(vm, pcs, *n);
    peek(&script, vm, t, buffer->script, max);
    /* The interpreter tells the names at a safepoint, to which it comes by
     * itself in that case. */
    if (script.has_unnamed && t) {
        store_relaxed(&t->wants_names, 1u);
        store_relaxed(&t->public.due, 1u);
    }
    return put_together(&script, buffer, pcs, n, max, end);
}

static enum cpprof__interp_result
merge(uintptr_t *pcs, size_t *n, size_t max, enum cpprof__unwind_end *end,
      bool is_handler)
{
    enum cpprof__interp_result all = CPPROF__INTERP_NONE, one;
    const struct cpprof_vm *vm;

    if (*n > CPPROF__MAX_DEPTH + 2)
        return CPPROF__INTERP_NONE;
    for (vm = cpprof__vm_first(); vm; vm = vm->next) {
        one = vm->ops.peek ? mix_one(vm, pcs, n, max, end, is_handler)
                           : CPPROF__INTERP_NONE;
        all = one > all ? one : all;
    }
    return all;
}

static bool
defer(const struct cpprof__deferred_stack *stack)
{
    struct cpprof__vm_thread *t = cpprof__vm_inside(cpprof__vm_entered());

    if (!cpprof__vm_deferred_stacks_add(t, stack))
        return false;
    store_relaxed(&t->public.due, 1u);
    if (t->vm->ops.interrupt)
        t->vm->ops.interrupt(t->thread);
    return true;
}

/* ---- safepoints ------------------------------------------------------- */

/* Give a deferred stack to its sink, with the frames of script; NULL: as it is.
 */
static void
give(const struct cpprof__deferred_stack *stack, const struct peeking *script,
     uintptr_t *pcs, bool is_own)
{
    enum cpprof__unwind_end end = stack->end;
    size_t n = stack->n;

    if (script)
        splice_in(script, stack->pcs, &n, pcs, CPPROF__MAX_DEPTH, &end);
    else
        memcpy(pcs, stack->pcs, n * sizeof *pcs);
    stack->sink->take(stack->cookie, stack->value, pcs, n, end, is_own);
}

static void
flush(struct cpprof__vm_thread *t, bool is_own)
{
    struct cpprof__vm_deferred_stacks *taken =
        cpprof__vm_deferred_stacks_take(t);
    uintptr_t pcs[CPPROF__MAX_DEPTH + 2];
    struct cpprof__deferred_stack stack;
    struct peeking script = {.n = 0};
    struct buffer *buffer;
    size_t at = 0;

    if (!taken)
        return;
    buffer = is_own && !t->is_busy ? take_buffer() : NULL;
    if (buffer)
        peek(&script, t->vm, t, buffer->script, CPPROF__MAX_DEPTH);
    while (cpprof__vm_deferred_stacks_next(taken, &at, &stack))
        give(&stack, script.n ? &script : NULL, pcs, is_own);
    if (buffer)
        give_buffer(buffer);
    cpprof__vm_deferred_stacks_give(t, taken);
}

/* Peek only to have the functions' names in the table. */
static void
learn_names(struct cpprof__vm_thread *t)
{
    struct buffer *buffer;
    struct peeking script;

    if (!swap_acq_rel(&t->wants_names, 0u) || !(buffer = take_buffer()))
        return;
    peek(&script, t->vm, t, buffer->script, CPPROF__MAX_DEPTH);
    give_buffer(buffer);
}

void
cpprof__vm_flush(struct cpprof__vm_thread *t)
{
    if (t->is_busy || !t->vm->ops.peek)
        return;
    flush(t, true);
    if (load_relaxed(&t->wants_names))
        learn_names(t);
}

void
cpprof__vm_flush_end(struct cpprof__vm_thread *t)
{
    flush(t, false);
    cpprof__vm_deferred_stacks_free(t);
}

/* Under the list's lock, so that none is freed meanwhile. */
static void
flush_all(void)
{
    struct cpprof__vm_thread *t;

    cpprof__own_lock_take(&cpprof__vm_threads_lock);
    for (t = cpprof__vm_threads; t; t = t->next)
        flush(t, &t->public == cpprof__vm_current);
    cpprof__own_lock_give(&cpprof__vm_threads_lock);
}

static void
abandoned(void)
{
    unsigned i;

    for (i = 0; i < BUFFERS; i++)
        if (load_relaxed(&owners[i]) == &cpprof__self)
            store_release(&owners[i], NULL);
}

void
cpprof__vm_mix_begin(void)
{
    static const struct cpprof__interp_ops interp = {merge, defer, flush_all,
                                                     merge_blocked, abandoned};

    cpprof__script_file_make();
    store_release(&cpprof__interp_ops, &interp);
}

CPPROF__FIRST_STEP void
cpprof__vm_mix_fork_child(void)
{
    struct cpprof__vm_thread *t;
    unsigned i;

    for (i = 0; were_taken && i < BUFFERS; i++)
        if (owners[i]) /* a page that is written to is copied */
            owners[i] = NULL;
    for (t = cpprof__vm_threads; t; t = t->next)
        cpprof__vm_deferred_stacks_forked(t);
}
