/* SPDX-License-Identifier: MIT */
/*
 * malloc, free and what is as old, and blocks with an alignment that is asked
 * for.
 *
 * Sources: malloc(3), posix_memalign(3), ISO C23 7.24.3 (free_sized),
 * reallocarray(3).
 */
#include "interpose/allocator.h"

#include "arch/find_object.h"
#include "arch/place.h"
#include "interpose/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if CPPROF__HAS_ALLOCATOR

__attribute__((used)) static void (*const linked_with)(void) = cpprof__init;

uintptr_t cpprof__allocator_at;
size_t cpprof__allocator_bytes;

/* No other definition exists: libc is statically linked into the program, and
 * without the loader it cannot be found. */
__attribute__((noreturn)) static void
refuse(void)
{
    static const char line[] = "cpprof: a program that is linked statically "
                               "with libc needs libcpprof-static.a\n";

    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        _Exit(127);
    abort();
}

/* More than there can be counts as nothing: the call will fail. */
static inline size_t
product(size_t n, size_t each)
{
    size_t bytes;

    return __builtin_mul_overflow(n, each, &bytes) ? 0 : bytes;
}

ALLOCATOR(malloc, (size_t n), (n), n, refuse)
ALLOCATOR(calloc, (size_t n, size_t each), (n, each), product(n, each), refuse)

/* ---- with an alignment ------------------------------------------------ */

/* The allocator lacks this function, and the program can know that: fail as if
 * out of memory. */
static void *
no_aligned(size_t alignment, size_t n)
{
    errno = ENOMEM;
    return NULL;
}

static void *
no_pages(size_t n)
{
    return no_aligned(0, n);
}

static int
no_posix_memalign(void **address, size_t alignment, size_t n)
{
    return ENOMEM;
}

/* What pvalloc returns: whole pages; nothing when that is more than can be. */
static size_t
whole_pages(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return n > SIZE_MAX - page ? 0 : (n + page - 1) & ~(page - 1);
}

ALLOCATOR(memalign, (size_t alignment, size_t n), (alignment, n), n, no_aligned)
ALLOCATOR(aligned_alloc, (size_t alignment, size_t n), (alignment, n), n,
          no_aligned)
ALLOCATOR(valloc, (size_t n), (n), n, no_pages)
ALLOCATOR(pvalloc, (size_t n), (n), whole_pages(n), no_pages)

TAKE_OVER_OR(posix_memalign, int, (void **address, size_t alignment, size_t n),
             (address, alignment, n), no_posix_memalign)

CPPROF__HOOK static int
posix_memalign_sampled(void **address, size_t alignment, size_t n)
{
    int failed;

    uncount(n);
    failed = cpprof__real(posix_memalign)(address, alignment, n);
    if (!failed)
        sample(*address, n);
    return failed;
}

CPPROF__HOOK static int
posix_memalign_on(void **address, size_t alignment, size_t n)
{
    if (IS_INNER())
        return cpprof__real(posix_memalign)(address, alignment, n);
    if (cpprof__heap_due(n))
        return posix_memalign_sampled(address, alignment, n);
    return cpprof__real(posix_memalign)(address, alignment, n);
}

/* ---- free ------------------------------------------------------------- */

/* Not in every libc: then what they add is only a promise of the caller's. */
static void
free_any_sized(void *address, size_t n)
{
    free(address);
}

static void
free_any_aligned(void *address, size_t alignment, size_t n)
{
    free(address);
}

void
free_sized(void *address, size_t n);
void
free_aligned_sized(void *address, size_t alignment, size_t n);

/* Of old programs; gone from libc's headers. */
void
cfree(void *address);

RELEASER(free, (void *address), (address), refuse)
RELEASER(cfree, (void *address), (address), free)
RELEASER(free_sized, (void *address, size_t n), (address, n), free_any_sized)
RELEASER(free_aligned_sized, (void *address, size_t alignment, size_t n),
         (address, alignment, n), free_any_aligned)

/* ---- realloc ---------------------------------------------------------- */

/*
 * The old block goes and a new one comes, in place too. NULL for no bytes means
 * that the block was freed.
 *
 * The stack is taken before: an interpreter that makes its own larger has it in
 * the old block until this returns.
 */
CPPROF__HOOK static void *
realloc_sampled(void *old, size_t n, bool due)
{
    struct cpprof__heap_removed removed = {.block.address = 0};
    struct cpprof__heap_ahead ahead = {.rate = 0};
    void *address;

    if (old && cpprof__heap_may_be_sampled(old))
        cpprof__heap_remove(old, 0, &removed);
    if (due)
        cpprof__heap_sample_begin(&ahead, n);
    address = cpprof__real(realloc)(old, n);
    if (!address && n && removed.block.address)
        cpprof__heap_restore(&removed);
    cpprof__heap_sample_end(&ahead, address, n);
    return address;
}

TAKE_OVER_OR(realloc, void *, (void *old, size_t n), (old, n), refuse)

CPPROF__HOOK static void *
realloc_on(void *old, size_t n)
{
    bool due = !IS_INNER() && cpprof__heap_due(n);

    if (due || cpprof__heap_may_be_sampled(old))
        return realloc_sampled(old, n, due);
    return cpprof__real(realloc)(old, n);
}

TAKE_OVER_OR(reallocarray, void *, (void *old, size_t n, size_t each),
             (old, n, each), reallocarray_on)

CPPROF__HOOK static void *
reallocarray_on(void *old, size_t n, size_t each)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

/* ---- a thread of ours at the end -------------------------------------- */

/*
 * libc takes a table of the new thread by calloc(), in the thread that makes
 * it. At exit() that one may be a handler that interrupted the allocator, which
 * is half-done then: so such a table is lent. Its thread may make it larger,
 * and libc may free it.
 */
static char lent[4096] CPPROF__LARGE __attribute__((aligned(16)));
static size_t n_lent;
static __thread bool borrows;
static __typeof__(calloc) *calloc_else;
static __typeof__(realloc) *realloc_else;
static __typeof__(free) *free_else;

static bool
is_lent(const void *address)
{
    return (uintptr_t)address - (uintptr_t)lent < sizeof lent;
}

static void *
calloc_or_lend(size_t n, size_t each)
{
    size_t bytes = (product(n, each) + 15) & ~(size_t)15, at;

    if (!borrows || !bytes || bytes > sizeof lent)
        return calloc_else(n, each);
    at = add_relaxed(&n_lent, bytes);
    return at <= sizeof lent - bytes ? lent + at : calloc_else(n, each);
}

static void *
realloc_lent(void *old, size_t n)
{
    size_t left = (size_t)(lent + sizeof lent - (char *)old);
    void *address;

    if (!is_lent(old))
        return realloc_else(old, n);
    address = malloc(n);
    return address ? memcpy(address, old, n < left ? n : left) : NULL;
}

static void
free_lent(void *address)
{
    if (!is_lent(address))
        free_else(address);
}

void
cpprof__lend_at_end(bool on)
{
    static bool is_done;

    if (!swap_acq_rel(&is_done, true)) {
        calloc_else = cpprof__real(calloc);
        realloc_else = cpprof__real(realloc);
        free_else = cpprof__real(free);
        cpprof__put_under(CPPROF__NAME_free, free_lent);
        cpprof__put_under(CPPROF__NAME_realloc, realloc_lent);
        cpprof__put_under(CPPROF__NAME_calloc, calloc_or_lend);
    }
    borrows = on;
}

/* ---- found ------------------------------------------------------------ */

/* By a name that the linker cannot bind to another's malloc. */
extern __typeof__(malloc) our_malloc
    __attribute__((alias("malloc"), visibility("hidden"), nothrow, leaf, malloc,
                   alloc_size(1)));

CPPROF__FIRST_STEP uintptr_t
cpprof__our_malloc(void)
{
    return (uintptr_t)our_malloc;
}

CPPROF__FIRST_STEP void
cpprof__find_allocator(void)
{
    struct dl_find_object malloc_at, libc_at;

    if (!cpprof__find_object((void *)cpprof__real(malloc), &malloc_at) ||
        !cpprof__find_object((void *)gnu_get_libc_version, &libc_at) ||
        malloc_at.dlfo_link_map == libc_at.dlfo_link_map)
        return;
    cpprof__allocator_at = (uintptr_t)malloc_at.dlfo_map_start;
    cpprof__allocator_bytes =
        (uintptr_t)malloc_at.dlfo_map_end - (uintptr_t)malloc_at.dlfo_map_start;
}

#else

void
cpprof__lend_at_end(bool on)
{
    (void)on;
}

#endif
