/* SPDX-License-Identifier: MIT */
/*
 * malloc, free and what is as old. Each is a subtraction or a load and a jump
 * to the next definition; what is due, or may be sampled, goes the long way.
 *
 * Sources: malloc(3), ISO C23 7.24.3 (free_sized), reallocarray(3).
 */
#include "collect/heap/heap_owner.h"
#include "interpose/allocator.h"
#include "interpose/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#if INTERPOSE_ALLOCATOR

typedef void *malloc_fn(size_t);
typedef void *
realloc_fn(void *, size_t);

__attribute__((used)) static void (*const linked_with)(void) = cpprof__init;

static malloc_fn malloc_first;
static realloc_fn realloc_first;

static malloc_fn *real_malloc = malloc_first;
static realloc_fn *real_realloc = realloc_first;

/* Nobody else has an allocator: libc is part of the program. Without the loader
 * there is nothing to find it by. */
__attribute__((noreturn)) static void
refuse(void)
{
    static const char line[] = "cpprof: a program that is linked statically "
                               "with libc cannot be profiled\n";

    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        _Exit(127);
    abort();
}

/* ---- malloc ----------------------------------------------------------- */

CPPROF__HOOK static void *
malloc_sampled(size_t n)
{
    void *address;

    uncount(n);
    address = load_relaxed(&real_malloc)(n);
    sample(address, n);
    return address;
}

CPPROF__HOOK static void *
malloc_counted(size_t n)
{
    if (cpprof__heap_due(n))
        return malloc_sampled(n);
    return load_relaxed(&real_malloc)(n);
}

static malloc_fn *malloc_entry = malloc_counted;

static void
malloc_switch(void)
{
    malloc_fn *real = load_relaxed(&real_malloc);

    if (real == malloc_first)
        return;
    if (!read_switch(&cpprof__allocator_counts))
        set_entry(&malloc_entry, real);
    if (read_switch(&cpprof__allocator_counts))
        set_entry(&malloc_entry, malloc_counted);
}

CPPROF__HOOK static void *
malloc_first(size_t n)
{
    malloc_fn *next = (malloc_fn *)cpprof__next_symbol("malloc");

    if (!next)
        refuse();
    store_release(&real_malloc, next);
    malloc_switch();
    return next(n);
}

CPPROF_API CPPROF__HOOK void *
malloc(size_t n)
{
    return load_relaxed(&malloc_entry)(n);
}

/* ---- calloc ----------------------------------------------------------- */

/* More than there can be counts as nothing: the call will fail. */
static inline size_t
product(size_t n, size_t each)
{
    size_t bytes;

    return __builtin_mul_overflow(n, each, &bytes) ? 0 : bytes;
}

static void *
no_calloc(size_t n, size_t each)
{
    refuse();
}

ALLOCATOR(calloc, "calloc", (size_t n, size_t each), (n, each),
          product(n, each), no_calloc)

/* ---- free ------------------------------------------------------------- */

static void
no_free(void *address)
{
    refuse();
}

RELEASER(free, "free", (void *address), (address), no_free)

/* Of old programs; gone from libc's headers. */
CPPROF_API free_fn cfree __attribute__((alias("free")));

/* Not in every libc: then what they add is only a promise of the caller's. */
static void
free_any_sized(void *address, size_t n)
{
    load_relaxed (&free_next)(address);
}

static void
free_any_aligned(void *address, size_t alignment, size_t n)
{
    load_relaxed (&free_next)(address);
}

RELEASER(free_sized, "free_sized", (void *address, size_t n), (address, n),
         free_any_sized)

RELEASER(free_aligned_sized, "free_aligned_sized",
         (void *address, size_t alignment, size_t n), (address, alignment, n),
         free_any_aligned)

/* ---- realloc ---------------------------------------------------------- */

CPPROF__HOOK static void *
realloc_first(void *old, size_t n)
{
    realloc_fn *next = (realloc_fn *)cpprof__next_symbol("realloc");

    if (!next)
        refuse();
    store_release(&real_realloc, next);
    return next(old, n);
}

/* The allocator's realloc was seen to call malloc by its name, which counts the
 * bytes once more: then every call takes the long way, which undoes that. */
static bool realloc_comes_back;

/*
 * The old block goes and a new one comes, in place too. Nothing is sampled
 * inside: an allocator whose realloc calls malloc would have it sampled twice.
 * NULL for no bytes means that the block was freed.
 *
 * The stack is taken before: an interpreter that makes its own larger has it in
 * the old block until this returns.
 */
CPPROF__HOOK static void *
realloc_sampled(void *old, size_t n, bool due)
{
    struct cpprof__heap_removed removed = {.block.address = 0};
    struct cpprof__heap_ahead ahead = {.rate = 0};
    struct cpprof__exempt before;
    void *address;
    int64_t left;

    if (old && cpprof__heap_may_be_sampled(old))
        cpprof__heap_remove(old, 0, &removed);
    if (due)
        sample_begin(&ahead, n);
    before = cpprof__exempt_begin((uintptr_t)__builtin_frame_address(0));
    left = cpprof__hook_self.left;
    address = load_relaxed(&real_realloc)(old, n);
    if (cpprof__hook_self.left != left) {
        store_relaxed(&realloc_comes_back, true);
        cpprof__hook_self.left = left;
    }
    cpprof__exempt_end(&before);
    if (!address && n && removed.block.address)
        cpprof__heap_restore(&removed);
    cpprof__heap_sample_end(&ahead, address, n);
    return address;
}

CPPROF__HOOK static void *
realloc_counted(void *old, size_t n)
{
    bool due = cpprof__heap_due(n);

    if (due || cpprof__heap_may_be_sampled(old) ||
        load_relaxed(&realloc_comes_back))
        return realloc_sampled(old, n, due);
    return load_relaxed(&real_realloc)(old, n);
}

static realloc_fn *realloc_entry = realloc_counted;

CPPROF_API CPPROF__HOOK void *
realloc(void *old, size_t n)
{
    return load_relaxed(&realloc_entry)(old, n);
}

static void
realloc_switch(void)
{
    realloc_fn *real = load_relaxed(&real_realloc);

    if (real == realloc_first)
        return;
    if (!read_switch(&cpprof__allocator_checks))
        set_entry(&realloc_entry, real);
    if (read_switch(&cpprof__allocator_checks))
        set_entry(&realloc_entry, realloc_counted);
}

CPPROF_API CPPROF__HOOK void *
reallocarray(void *old, size_t n, size_t each)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

/* By a name that the linker cannot bind to another's malloc. */
extern malloc_fn our_malloc
    __attribute__((alias("malloc"), visibility("hidden"), nothrow, leaf, malloc,
                   alloc_size(1)));

#define EACH(X)                                                                \
    X(calloc)                                                                  \
    X(free)                                                                    \
    X(free_sized)                                                              \
    X(free_aligned_sized)

void
cpprof__malloc_find(void)
{
    malloc_fn *next_malloc = (malloc_fn *)cpprof__next_symbol("malloc");
    realloc_fn *next_realloc = (realloc_fn *)cpprof__next_symbol("realloc");

    cpprof__heap_our_malloc = (uintptr_t)our_malloc;
    if (next_malloc)
        store_release(&real_malloc, next_malloc);
    if (next_realloc)
        store_release(&real_realloc, next_realloc);
    EACH(FORGET)
}

void
cpprof__malloc_switch(void)
{
    malloc_switch();
    realloc_switch();
    EACH(SWITCH)
}

#endif
