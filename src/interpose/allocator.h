/* SPDX-License-Identifier: MIT */
/*
 * One entry point of an allocator, taken over. The name itself is a jump
 * through a pointer to one of
 *
 *     NAME_first    finds the next definition, calls it, and sees whether that
 *                   comes back to us by another name (libstdc++'s operator new
 *                   calls malloc, tcmalloc's does not): then it is counted
 *                   there, and from now on the pointer is
 *     the next definition itself;      otherwise it is
 *     NAME_counted  which counts and samples.
 *
 * So nothing is counted twice and nothing is missed, without a list of who does
 * what. The pointers are never NULL: what calls before any constructor finds
 * NAME_first, which needs neither locks nor memory.
 *
 * While the rate is 0 all pointers are the next definitions, so that a program
 * that is not sampled pays for a jump; those of what frees only until something
 * was sampled.
 */
#ifndef INTERPOSE_ALLOCATOR_H
#define INTERPOSE_ALLOCATOR_H

#include "collect/runtime/next.h"
#include "collect/signal/heap/heap.h"
#include <cpprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sanitizers' allocators have to be first: they keep what surrounds each
 * block. A library that is built with one leaves the names to it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INTERPOSE_ALLOCATOR 0
#else
#define INTERPOSE_ALLOCATOR 1
#endif

/* Another's malloc is in front of ours: then the names that still come to us
 * are not sampled, since their blocks may be freed behind our back. */
extern bool cpprof__allocator_stands_back;

/* What a switch has to do is said here first, with sequential consistency:
 * whoever sets a pointer afterwards looks here again. */
extern bool cpprof__allocator_counts; /* the rate is not 0 */
extern bool cpprof__allocator_checks; /* nor was it always */

/* Take a count back, until it is known what becomes of the call: it may fail,
 * and operator new may throw. */
static inline void
uncount(size_t n)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;

    self->left = (int64_t)((uint64_t)self->left + n);
}

/* Of the running thread: a first call of some name is on its way, and is
 * waiting to see whether another of our names is called for it. */
extern __thread bool cpprof__allocator_probes
    __attribute__((visibility("hidden")));

__attribute__((always_inline)) static inline void
sample(const void *address, size_t n)
{
    uncount(-n);
    if (__builtin_expect(cpprof__allocator_probes, 0))
        cpprof__allocator_probes = false;
    else
        cpprof__heap_sample(address, n, 0);
}

/* The same before the call, of one that counts nothing in between and does not
 * throw; cpprof__heap_sample_end() follows. */
__attribute__((always_inline)) static inline void
sample_begin(struct cpprof__heap_ahead *ahead, size_t n)
{
    if (__builtin_expect(cpprof__allocator_probes, 0))
        cpprof__allocator_probes = false;
    else
        cpprof__heap_sample_begin(ahead, n);
}

/*
 * The first call: everything is due meanwhile, so that whatever is called for
 * it ends in sample(). When it throws, the thread is left so; then its next
 * allocation is taken for the answer, and the one after it is due: no more.
 */
struct probe {
    int64_t left;
    int64_t due;
    bool is_inner; /* of another first call, or what was recorded by
                    * cpprof_heap_record(): it is counted there */
};

static inline struct probe
probe_begin(void)
{
    struct cpprof__hook_self *self = &cpprof__hook_self;
    int64_t floor = load_relaxed(&cpprof__heap_floor);
    struct probe probe = {self->left, (int64_t)((uint64_t)floor - 1),
                          cpprof__allocator_probes};

    self->left = probe.due;
    cpprof__allocator_probes = true;
    return probe;
}

/* Did it come back to us by another name? */
static inline bool
probe_end(struct probe *probe)
{
    bool was_called = !cpprof__allocator_probes;

    if (!was_called && cpprof__hook_self.left != probe->due)
        probe->is_inner = was_called = true;
    cpprof__allocator_probes = false;
    cpprof__hook_self.left = probe->left;
    return was_called;
}

#define read_switch(p)  __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define set_entry(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

/*
 * Define `name`, which returns the address of a block of `bytes` bytes:
 *
 *     id          what its functions are called here
 *     name        the symbol
 *     parameters  in parentheses
 *     arguments   the same without types
 *     bytes       of the block, from the arguments
 *     otherwise   what to call when nobody else defines it
 *
 * id_forget() goes back to the beginning and finds the next definition anew.
 */
#define ALLOCATOR(id, name, parameters, arguments, bytes, otherwise)           \
    typedef void *id##_fn parameters;                                          \
    static id##_fn id##_first;                                                 \
    static id##_fn *id##_next, *id##_entry = id##_first;                       \
                                                                               \
    CPPROF_API id##_fn id##_exported __asm__(name);                            \
                                                                               \
    CPPROF__HOOK void *id##_exported parameters                                \
    {                                                                          \
        return load_relaxed(&id##_entry) arguments;                            \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static void *id##_sampled parameters                          \
    {                                                                          \
        void *address;                                                         \
                                                                               \
        uncount(bytes);                                                        \
        address = load_relaxed(&id##_next) arguments;                          \
        sample(address, bytes);                                                \
        return address;                                                        \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static void *id##_counted parameters                          \
    {                                                                          \
        if (cpprof__heap_due(bytes))                                           \
            return id##_sampled arguments;                                     \
        return load_relaxed(&id##_next) arguments;                             \
    }                                                                          \
                                                                               \
    /* After the rate changed from or to 0. */                                 \
    static void id##_switch(void)                                              \
    {                                                                          \
        id##_fn *next = load_relaxed(&id##_next);                              \
                                                                               \
        if (!next)                                                             \
            return;                                                            \
        if (!read_switch(&cpprof__allocator_counts))                           \
            set_entry(&id##_entry, next);                                      \
        if (read_switch(&cpprof__allocator_counts))                            \
            set_entry(&id##_entry, id##_first);                                \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static void *id##_first parameters                            \
    {                                                                          \
        id##_fn *next = load_relaxed(&id##_next);                              \
        struct probe probe;                                                    \
        bool is_counted;                                                       \
        void *address;                                                         \
                                                                               \
        if (!next)                                                             \
            next = (id##_fn *)cpprof__next_symbol(name);                       \
        if (!next)                                                             \
            next = otherwise;                                                  \
        store_relaxed(&id##_next, next);                                       \
        if (!read_switch(&cpprof__allocator_counts)) {                         \
            id##_switch();                                                     \
            return next arguments;                                             \
        }                                                                      \
        probe = probe_begin();                                                 \
        address = next arguments;                                              \
        is_counted = probe_end(&probe) || cpprof__allocator_stands_back;       \
        if (!address)                                                          \
            return NULL;                                                       \
        store_release(&id##_entry, is_counted ? next : id##_counted);          \
        if (!read_switch(&cpprof__allocator_counts))                           \
            id##_switch();                                                     \
        if (!probe.is_inner && !cpprof__allocator_stands_back &&               \
            cpprof__heap_due(bytes))                                           \
            cpprof__heap_sample(address, bytes, 0);                            \
        return address;                                                        \
    }                                                                          \
                                                                               \
    static void id##_forget(void)                                              \
    {                                                                          \
        store_release(&id##_entry, id##_first);                                \
        store_release(&id##_next, (id##_fn *)cpprof__next_symbol(name));       \
    }

/* Define `name`, which frees `address`, one of its parameters: out of the table
 * first, since after the real free the address may be another thread's. */
#define RELEASER(id, name, parameters, arguments, otherwise)                   \
    typedef void id##_fn parameters;                                           \
    static id##_fn id##_first;                                                 \
    static id##_fn *id##_next = id##_first, *id##_entry = id##_first;          \
                                                                               \
    CPPROF_API id##_fn id##_exported __asm__(name);                            \
                                                                               \
    void id##_exported parameters                                              \
    {                                                                          \
        load_relaxed(&id##_entry) arguments;                                   \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static void id##_sampled parameters                           \
    {                                                                          \
        cpprof__heap_remove(address, 0, NULL);                                 \
        load_relaxed(&id##_next) arguments;                                    \
    }                                                                          \
                                                                               \
    static void id##_checked parameters                                        \
    {                                                                          \
        if (cpprof__heap_may_be_sampled(address))                              \
            id##_sampled arguments;                                            \
        else                                                                   \
            load_relaxed(&id##_next) arguments;                                \
    }                                                                          \
                                                                               \
    static void id##_switch(void)                                              \
    {                                                                          \
        if (!read_switch(&cpprof__allocator_checks))                           \
            set_entry(&id##_entry, load_relaxed(&id##_next));                  \
        if (read_switch(&cpprof__allocator_checks))                            \
            set_entry(&id##_entry, id##_checked);                              \
    }                                                                          \
                                                                               \
    CPPROF__HOOK static void id##_first parameters                             \
    {                                                                          \
        id##_fn *next = (id##_fn *)cpprof__next_symbol(name);                  \
                                                                               \
        if (!next)                                                             \
            next = otherwise;                                                  \
        store_release(&id##_next, next);                                       \
        id##_switch();                                                         \
        next arguments;                                                        \
    }                                                                          \
                                                                               \
    static void id##_forget(void)                                              \
    {                                                                          \
        id##_fn *next = (id##_fn *)cpprof__next_symbol(name);                  \
                                                                               \
        store_release(&id##_next, next ? next : id##_first);                   \
        id##_switch();                                                         \
    }

/* For lists of the names of a file. */
#define FORGET(id) id##_forget();
#define SWITCH(id) id##_switch();

/* Find the next definitions: once early, so that a later first call need not
 * look through modules that come and go; and again when one went. */
void
cpprof__malloc_find(void);
void
cpprof__malloc_aligned_find(void);
void
cpprof__operators_find(void);

/* Set all pointers anew after one of the switches above changed. Safety: AS. */
void
cpprof__malloc_switch(void);
void
cpprof__malloc_aligned_switch(void);
void
cpprof__operators_switch(void);

#endif
