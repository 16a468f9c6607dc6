/* SPDX-License-Identifier: MIT */
/*
 * Two buffers for each thread of an interpreter, exchanged by
 * compare-and-swap; deferred_stacks.h tells why.
 *
 * An entry is a stack with the sink that waits for it. The handler appends to
 * the buffer that is out; a stack that equals the last one entered only adds
 * its value to it, which a busy loop makes the common case. Memory comes from
 * the mmap system call, because the handler may have interrupted malloc or an
 * mmap that somebody else has taken over.
 */
#include "vm/stacks/deferred_stacks.h"

#include "collect/signal/tables/reserve.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
    const struct cpprof__deferred_sink *sink;
    uint64_t cookie;
    uint64_t value;
    uint32_t n;
    uint32_t end;
    uintptr_t pcs[];
};

#define WORDS                                                                  \
    ((CPPROF__VM_DEFERRED_BYTES - 2 * sizeof(size_t)) / sizeof(uint64_t))

struct cpprof__vm_deferred_stacks {
    size_t used; /* words */
    size_t last; /* where the last entry begins; only if used is not 0 */
    uint64_t words[WORDS];
};

/* This runs in a handler, so it asks the kernel and not an mmap that the
 * program may have taken over. */
static struct cpprof__vm_deferred_stacks *
make(struct cpprof__vm_thread *t)
{
    void *block =
        (void *)syscall(SYS_mmap, cpprof__table_place(2 * sizeof *t->deferred),
                        2 * sizeof *t->deferred, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (block == MAP_FAILED)
        return NULL;
    t->deferred_block = block;
    store_release(&t->spare, (struct cpprof__vm_deferred_stacks *)block + 1);
    return block;
}

static struct entry *
entry_at(const struct cpprof__vm_deferred_stacks *buffer, size_t at)
{
    return (struct entry *)(uintptr_t)&buffer->words[at];
}

static bool
is_same(const struct entry *entry, const struct cpprof__deferred_stack *stack)
{
    return entry->sink == stack->sink && entry->cookie == stack->cookie &&
           entry->n == stack->n && entry->end == (uint32_t)stack->end &&
           !memcmp(entry->pcs, stack->pcs, stack->n * sizeof *stack->pcs);
}

static bool
append(struct cpprof__vm_deferred_stacks *buffer,
       const struct cpprof__deferred_stack *stack)
{
    size_t n_words = sizeof(struct entry) / sizeof *buffer->words + stack->n;
    struct entry *entry = entry_at(buffer, buffer->last);

    if (buffer->used && is_same(entry, stack)) {
        entry->value += stack->value;
        return true;
    }
    if (n_words > WORDS - buffer->used)
        return false;
    buffer->last = buffer->used;
    entry = entry_at(buffer, buffer->used);
    *entry = (struct entry){stack->sink, stack->cookie, stack->value,
                            (uint32_t)stack->n, (uint32_t)stack->end};
    memcpy(entry->pcs, stack->pcs, stack->n * sizeof *stack->pcs);
    store_relaxed(&buffer->used, buffer->used + n_words);
    return true;
}

bool
cpprof__vm_deferred_stacks_add(struct cpprof__vm_thread *t,
                               const struct cpprof__deferred_stack *stack)
{
    struct cpprof__vm_deferred_stacks *buffer =
        swap_acq_rel(&t->deferred, NULL);
    bool is_kept;

    if (!buffer && !t->deferred_block)
        buffer = make(t);
    if (!buffer)
        return false;
    is_kept = append(buffer, stack);
    store_release(&t->deferred, buffer);
    return is_kept;
}

struct cpprof__vm_deferred_stacks *
cpprof__vm_deferred_stacks_take(struct cpprof__vm_thread *t)
{
    struct cpprof__vm_deferred_stacks *buffer = load_acquire(&t->deferred),
                                      *spare;

    if (!buffer || !load_relaxed(&buffer->used) ||
        swap_acq_rel(&t->is_flushing, 1u))
        return NULL;
    spare = load_acquire(&t->spare);
    buffer = load_acquire(&t->deferred);
    /* NULL: the handler has it at the moment, in another thread. */
    if (!buffer || !cas_acq_rel(&t->deferred, &buffer, spare)) {
        store_release(&t->is_flushing, 0u);
        return NULL;
    }
    return buffer;
}

void
cpprof__vm_deferred_stacks_give(struct cpprof__vm_thread *t,
                                struct cpprof__vm_deferred_stacks *taken)
{
    store_relaxed(&taken->used, 0);
    store_release(&t->spare, taken);
    store_release(&t->is_flushing, 0u);
}

bool
cpprof__vm_deferred_stacks_next(const struct cpprof__vm_deferred_stacks *taken,
                                size_t *at,
                                struct cpprof__deferred_stack *stack)
{
    const struct entry *entry = entry_at(taken, *at);

    if (*at >= taken->used)
        return false;
    *stack = (struct cpprof__deferred_stack){
        entry->sink, entry->cookie, entry->value,
        entry->pcs,  entry->n,      (enum cpprof__unwind_end)entry->end};
    *at += sizeof *entry / sizeof *taken->words + entry->n;
    return true;
}

void
cpprof__vm_deferred_stacks_free(struct cpprof__vm_thread *t)
{
    if (t->deferred_block)
        munmap(t->deferred_block, 2 * sizeof *t->deferred);
    t->deferred_block = NULL;
    t->deferred = t->spare = NULL;
}

/* The thread that forked was not in its handler; another may have been, and
 * does not come back. */
void
cpprof__vm_deferred_stacks_forked(struct cpprof__vm_thread *t)
{
    struct cpprof__vm_deferred_stacks *block = t->deferred_block;

    t->is_flushing = 0;
    if (!block)
        return;
    block[0].used = block[1].used = 0;
    t->deferred = &block[0];
    t->spare = &block[1];
}
