/* SPDX-License-Identifier: MIT */
/*
 * operator new and delete of C++, as C functions under their mangled names: no
 * C++ runtime is needed, and one that comes later is found when it is there.
 * Those of an allocator are counted; the others call malloc, and are jumps
 * (interpose/allocator.h). What they throw passes through here: this folder is
 * compiled with unwind tables.
 *
 * Source: Itanium C++ ABI 5.1.5 (names); ISO C++20 17.6.3.
 */
#include "interpose/allocator.h"

#include <stdlib.h>

#if CPPROF__HAS_ALLOCATOR

/* size_t is unsigned long in these names. */
_Static_assert(__SIZEOF_LONG__ == sizeof(size_t), "size_t is mangled as m");

/* ---- new, when there is no other -------------------------------------- */

/* As far as a C++ runtime is linked statically. */
typedef void
handler_fn(void);
extern handler_fn *
get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
extern void
throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));

static void *
new_aligned(size_t n, size_t alignment)
{
    void *address = NULL;

    if (!n)
        n = 1;
    if (!alignment)
        return malloc(n);
    return posix_memalign(&address, alignment, n) ? NULL : address;
}

static void *
new_or_throw(size_t n, size_t alignment)
{
    void *address;

    while (!(address = new_aligned(n, alignment))) {
        handler_fn *handler = get_new_handler ? get_new_handler() : NULL;

        if (handler)
            handler();
        else if (throw_bad_alloc)
            throw_bad_alloc();
        else
            abort(); /* nothing can be thrown where nothing can catch */
    }
    return address;
}

static void *
new_plain(size_t n)
{
    return new_or_throw(n, 0);
}

static void *
new_nothrow(size_t n, const void *nothrow)
{
    return new_aligned(n, 0);
}

static void *
new_aligned_nothrow(size_t n, size_t alignment, const void *nothrow)
{
    return new_aligned(n, alignment);
}

/* ---- new -------------------------------------------------------------- */

/* By their own names, which no header declares. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
#define NEW(name, parameters, arguments, otherwise)                            \
    void *name parameters;                                                     \
    ALLOCATOR(name, parameters, arguments, n, otherwise)

NEW(_Znwm, (size_t n), (n), new_plain)
NEW(_Znam, (size_t n), (n), new_plain)
NEW(_ZnwmRKSt9nothrow_t, (size_t n, const void *nothrow), (n, nothrow),
    new_nothrow)
NEW(_ZnamRKSt9nothrow_t, (size_t n, const void *nothrow), (n, nothrow),
    new_nothrow)
NEW(_ZnwmSt11align_val_t, (size_t n, size_t alignment), (n, alignment),
    new_or_throw)
NEW(_ZnamSt11align_val_t, (size_t n, size_t alignment), (n, alignment),
    new_or_throw)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t,
    (size_t n, size_t alignment, const void *nothrow), (n, alignment, nothrow),
    new_aligned_nothrow)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t,
    (size_t n, size_t alignment, const void *nothrow), (n, alignment, nothrow),
    new_aligned_nothrow)

/* ---- delete ----------------------------------------------------------- */

/* When there is no other: what new above gave. */
static void
delete_plain(void *address)
{
    free(address);
}

static void
delete_with(void *address, size_t n)
{
    free(address);
}

static void
delete_nothrow(void *address, const void *nothrow)
{
    free(address);
}

static void
delete_with_both(void *address, size_t n, size_t alignment)
{
    free(address);
}

static void
delete_with_nothrow(void *address, size_t alignment, const void *nothrow)
{
    free(address);
}

#define DELETE(name, parameters, arguments, otherwise)                         \
    void name parameters;                                                      \
    RELEASER(name, parameters, arguments, otherwise)

DELETE(_ZdlPv, (void *address), (address), delete_plain)
DELETE(_ZdaPv, (void *address), (address), delete_plain)
DELETE(_ZdlPvm, (void *address, size_t n), (address, n), delete_with)
DELETE(_ZdaPvm, (void *address, size_t n), (address, n), delete_with)
DELETE(_ZdlPvRKSt9nothrow_t, (void *address, const void *nothrow),
       (address, nothrow), delete_nothrow)
DELETE(_ZdaPvRKSt9nothrow_t, (void *address, const void *nothrow),
       (address, nothrow), delete_nothrow)
DELETE(_ZdlPvSt11align_val_t, (void *address, size_t alignment),
       (address, alignment), delete_with)
DELETE(_ZdaPvSt11align_val_t, (void *address, size_t alignment),
       (address, alignment), delete_with)
DELETE(_ZdlPvmSt11align_val_t, (void *address, size_t n, size_t alignment),
       (address, n, alignment), delete_with_both)
DELETE(_ZdaPvmSt11align_val_t, (void *address, size_t n, size_t alignment),
       (address, n, alignment), delete_with_both)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t,
       (void *address, size_t alignment, const void *nothrow),
       (address, alignment, nothrow), delete_with_nothrow)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t,
       (void *address, size_t alignment, const void *nothrow),
       (address, alignment, nothrow), delete_with_nothrow)
/* NOLINTEND(bugprone-reserved-identifier) */

#endif
