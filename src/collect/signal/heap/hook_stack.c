/* SPDX-License-Identifier: MIT */
/*
 * Walks the stack of a hook's caller and turns it into a node of the stack
 * tree.
 *
 * The walk needs a buffer of some kilobytes, of which there are a fixed
 * number. Protocol of a buffer: its owner word is NULL or the address of a
 * thread's own cpprof__hook_self. A thread takes one by compare-and-swap,
 * beginning its search at an index of its own, and gives it back by storing
 * NULL. A handler that interrupts the walk and allocates takes another one. If
 * the thread jumps out of the walk, the buffer keeps its owner until
 * cpprof__hook_walk_abandoned() frees it. A forked child frees those of other
 * threads.
 *
 * A buffer remembers the last stacks by their leaves, because the same call
 * often allocates again: then the walk ends in a comparison instead of a
 * search in the tree.
 */
#include "collect/signal/heap/hook_stack.h"

#include "arch/atomic.h"
#include "arch/mix.h"
#include "arch/place.h"
#include "arch/regs.h"
#include "collect/signal/tables/cost.h"
#include "collect/signal/tables/interp_frames.h"
#include "collect/signal/tables/own_frames.h"
#include "collect/signal/tables/reserve.h"
#include "collect/signal/unwind/unwind.h"

/* Where scripts run, most native frames may be those of an interpreter, several
 * for one frame of the script. So more frames are walked than will remain. */
#define WALK_MAX 512
_Static_assert(WALK_MAX >=
                   CPPROF__HOOK_SKIP + CPPROF__HEAP_HOOKS + CPPROF__HEAP_DEPTH,
               "as many as of others");

/* Stacks that a buffer remembers. A power of two. */
#define LAST_BITS   4
#define LAST_STACKS (1u << LAST_BITS)

struct buffer {
    struct cpprof__stack_view view;
    uint32_t last[LAST_STACKS]; /* numbers that were found, by their leaves */
    uintptr_t pcs[WALK_MAX + 1];
};
static struct buffer *buffers; /* CPPROF__HOOK_BUFFERS; NULL: not yet */

/* The owners of the buffers: cpprof__hook_self of a thread; NULL: free. They
 * lie apart from the buffers, so that a forked child, which checks all of them,
 * touches few pages; and each has its own cache line. */
static struct owner {
    _Alignas(64) const void *self;
} owners[CPPROF__HOOK_BUFFERS] CPPROF__LARGE;

uintptr_t cpprof__main_stack_lo CPPROF__AT_START;
uintptr_t cpprof__main_stack_hi CPPROF__AT_START;

/* The linker's: where section cpprof_hooks begins and ends. */
extern const char __start_cpprof_hooks[] __attribute__((visibility("hidden")));
extern const char __stop_cpprof_hooks[] __attribute__((visibility("hidden")));

/* A thread begins its search at its own index, which is likely in its cache. */
static struct buffer *
take_buffer(void)
{
    uintptr_t self = (uintptr_t)&cpprof__hook_self;
    unsigned first = (unsigned)cpprof__spread_u64(self >> 12, 32);
    unsigned i;

    if (!load_acquire(&buffers))
        return NULL;
    for (i = 0; i < CPPROF__HOOK_BUFFERS; i++) {
        unsigned at = (first + i) % CPPROF__HOOK_BUFFERS;
        const void *nobody = NULL;

        if (!load_relaxed(&owners[at].self) &&
            cas_acq_rel(&owners[at].self, &nobody, (const void *)self))
            return &buffers[at];
    }
    return NULL;
}

bool
cpprof__hook_walk_reserve(struct cpprof__tree *tree)
{
    if (!cpprof__reserve_once((void **)&buffers,
                              CPPROF__HOOK_BUFFERS * sizeof *buffers) ||
        !cpprof__tree_reserve(tree))
        return false;
    cpprof__tree_own(tree);
    return true;
}

CPPROF__FIRST_STEP void
cpprof__hook_walk_forked(void)
{
    unsigned i;

    /* A store would copy the page that is shared with the parent, so store only
     * where necessary. */
    for (i = 0; load_relaxed(&buffers) && i < CPPROF__HOOK_BUFFERS; i++) {
        const void *owner = load_relaxed(&owners[i].self);

        if (owner && owner != &cpprof__hook_self)
            store_release(&owners[i].self, NULL);
    }
}

void
cpprof__hook_walk_abandoned(void)
{
    unsigned i;

    for (i = 0; i < CPPROF__HOOK_BUFFERS; i++)
        if (load_relaxed(&owners[i].self) == &cpprof__hook_self)
            store_release(&owners[i].self, NULL);
}

void
cpprof__hook_see_stack(struct cpprof__stack_view *view, uintptr_t sp)
{
    const struct cpprof__hook_self *self = &cpprof__hook_self;

    view->lo = view->hi = 0;
    if (sp - self->stack_lo < self->stack_hi - self->stack_lo)
        view->hi = self->stack_hi;
    else if (sp - cpprof__main_stack_lo <
             cpprof__main_stack_hi - cpprof__main_stack_lo)
        view->hi = cpprof__main_stack_hi;
    if (view->hi)
        view->lo = sp;
}

static bool
is_hook(uintptr_t pc)
{
    return pc - (uintptr_t)__start_cpprof_hooks <
           (uintptr_t)__stop_cpprof_hooks - (uintptr_t)__start_cpprof_hooks;
}

size_t
cpprof__drop_hooks(uintptr_t *pcs, size_t n, uintptr_t leaf, bool *has_hook)
{
    size_t i, kept = 0;

    *has_hook = false;
    for (i = 0; i < n; i++) {
        if (!is_hook(pcs[i])) {
            pcs[kept++] = pcs[i];
            continue;
        }
        if (!*has_hook && leaf && kept)
            pcs[kept - 1] = leaf;
        *has_hook = true;
    }
    return kept ? kept : n;
}

/* The number of frames to leave out; none when nothing else would be left. */
static size_t
leading_hooks(const uintptr_t *pcs, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (!is_hook(pcs[i]))
            return i;
    return 0;
}

/* Which of the last stacks of a buffer may be this one? */
static uint32_t *
last_of(uint32_t last[LAST_STACKS], uintptr_t leaf)
{
    return &last[cpprof__spread_u64(leaf, LAST_BITS)];
}

static uint32_t
add(struct cpprof__tree *tree, uint32_t last[LAST_STACKS], const uintptr_t *pcs,
    size_t n)
{
    uint32_t *number = last_of(last, pcs[0]);

    *number = cpprof__tree_add_again(tree, *number, pcs, n);
    return *number;
}

/* The number of frames to leave out up to the end of the next hooks further up:
 * leading hooks, what the outer hooks have called, and those. n: there are no
 * outer hooks. */
static size_t
up_to_outer_hooks(const uintptr_t *pcs, size_t n)
{
    size_t i = leading_hooks(pcs, n);

    while (i < n && !is_hook(pcs[i]))
        i++;
    while (i < n && is_hook(pcs[i]))
        i++;
    return i;
}

/* Merge script frames into the stack behind its first frames, which are ours
 * and left out, so that the interpreter's module sees the program's own call.
 */
static __attribute__((noinline, cold)) void
merge(const struct cpprof__interp_ops *interp, struct cpprof__heap_stack *stack,
      size_t first)
{
    size_t n = stack->n - first;

    interp->merge(stack->pcs + first, &n, stack->max - first, &stack->end,
                  !stack->is_at_rest);
    stack->n = first + n;
}

/* Leave out the first frames and hooks further up, and say how the stack ends:
 * the first that stays; .n is how many there are then. */
static size_t
finish(struct cpprof__heap_stack *stack, size_t first)
{
    const struct cpprof__interp_ops *interp = load_acquire(&cpprof__interp_ops);
    bool has_hook;

    if (first && first >= stack->n) {
        stack->pcs[0] = CPPROF__FRAME_LOST;
        stack->n = 1;
        return 0;
    }
    stack->n = first + cpprof__drop_hooks(stack->pcs + first, stack->n - first,
                                          0, &has_hook);
    if (interp)
        merge(interp, stack, first);
    stack->n -= first;
    if (stack->n > CPPROF__HEAP_DEPTH) {
        stack->n = CPPROF__HEAP_DEPTH;
        stack->end = CPPROF__UNWIND_DEPTH;
    }
    stack->n = cpprof__mark_end(stack->pcs + first, stack->n, stack->end);
    return first;
}

uint32_t
cpprof__hook_stack_add(struct cpprof__tree *tree,
                       struct cpprof__heap_stack *stack, size_t skip)
{
    size_t first = finish(stack, skip + leading_hooks(stack->pcs, stack->n));

    return cpprof__tree_add(tree, stack->pcs + first, stack->n);
}

CPPROF__HOOK uint32_t
cpprof__hook_walk(struct cpprof__tree *tree, bool is_at_rest)
{
    return cpprof__hook_walk_skip(tree, 0, is_at_rest);
}

static size_t
frames_to_walk(unsigned skip)
{
    return load_relaxed(&cpprof__interp_ops)
               ? WALK_MAX
               : skip + CPPROF__HEAP_HOOKS + CPPROF__HEAP_DEPTH;
}

/* outside: frames below the outer hooks, and these, are left out. */
static inline __attribute__((always_inline)) uint32_t
walk(struct cpprof__tree *tree, unsigned skip, bool outside, bool is_at_rest)
{
    uint64_t begin = cpprof__cost_begin(CPPROF__COST_WALKS);
    struct cpprof__heap_stack stack = {.max = WALK_MAX};
    struct buffer *p = take_buffer();
    struct cpprof__regs regs;
    uint32_t number;
    size_t first;

    if (!p)
        return 0;
    cpprof__regs_here(&regs);
    cpprof__hook_see_stack(&p->view, regs.sp);
    stack.pcs = p->pcs;
    stack.n = cpprof__unwind(&regs, &p->view, p->pcs, frames_to_walk(skip),
                             &stack.end);
    stack.is_at_rest = is_at_rest && !p->view.has_handler;
    first = outside ? up_to_outer_hooks(p->pcs, stack.n)
                    : skip + leading_hooks(p->pcs, stack.n);
    first = finish(&stack, first);
    number = add(tree, p->last, p->pcs + first, stack.n);
    store_release(&owners[p - buffers].self, NULL);
    cpprof__cost_end(CPPROF__COST_WALKS, begin);
    return number;
}

CPPROF__HOOK uint32_t
cpprof__hook_walk_skip(struct cpprof__tree *tree, unsigned skip,
                       bool is_at_rest)
{
    return walk(tree, skip, false, is_at_rest);
}

CPPROF__HOOK uint32_t
cpprof__hook_walk_outside(struct cpprof__tree *tree)
{
    return walk(tree, CPPROF__HOOK_SKIP, true, false);
}
