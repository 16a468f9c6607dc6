/* SPDX-License-Identifier: MIT */
/*
 * operator new and delete of C++, as C functions under their mangled names: no
 * C++ runtime is needed, and one that comes later is found when it is there.
 * Where the next operator new calls malloc, ours is a jump to it
 * (interpose/allocator.h). What it throws passes through here: this folder is
 * compiled with unwind tables.
 *
 * Source: Itanium C++ ABI 5.1.5 (names); ISO C++20 17.6.3.
 */
#include "interpose/allocator.h"

#include <stdlib.h>

#if INTERPOSE_ALLOCATOR

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

ALLOCATOR(new_one, "_Znwm", (size_t n), (n), n, new_plain)
ALLOCATOR(new_array, "_Znam", (size_t n), (n), n, new_plain)
ALLOCATOR(new_one_nothrow, "_ZnwmRKSt9nothrow_t",
          (size_t n, const void *nothrow), (n, nothrow), n, new_nothrow)
ALLOCATOR(new_array_nothrow, "_ZnamRKSt9nothrow_t",
          (size_t n, const void *nothrow), (n, nothrow), n, new_nothrow)
ALLOCATOR(new_one_aligned, "_ZnwmSt11align_val_t", (size_t n, size_t alignment),
          (n, alignment), n, new_or_throw)
ALLOCATOR(new_array_aligned, "_ZnamSt11align_val_t",
          (size_t n, size_t alignment), (n, alignment), n, new_or_throw)
ALLOCATOR(new_one_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t",
          (size_t n, size_t alignment, const void *nothrow),
          (n, alignment, nothrow), n, new_aligned_nothrow)
ALLOCATOR(new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",
          (size_t n, size_t alignment, const void *nothrow),
          (n, alignment, nothrow), n, new_aligned_nothrow)

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

RELEASER(delete_one, "_ZdlPv", (void *address), (address), delete_plain)
RELEASER(delete_array, "_ZdaPv", (void *address), (address), delete_plain)
RELEASER(delete_one_sized, "_ZdlPvm", (void *address, size_t n), (address, n),
         delete_with)
RELEASER(delete_array_sized, "_ZdaPvm", (void *address, size_t n), (address, n),
         delete_with)
RELEASER(delete_one_nothrow, "_ZdlPvRKSt9nothrow_t",
         (void *address, const void *nothrow), (address, nothrow),
         delete_nothrow)
RELEASER(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t",
         (void *address, const void *nothrow), (address, nothrow),
         delete_nothrow)
RELEASER(delete_one_aligned, "_ZdlPvSt11align_val_t",
         (void *address, size_t alignment), (address, alignment), delete_with)
RELEASER(delete_array_aligned, "_ZdaPvSt11align_val_t",
         (void *address, size_t alignment), (address, alignment), delete_with)
RELEASER(delete_one_sized_aligned, "_ZdlPvmSt11align_val_t",
         (void *address, size_t n, size_t alignment), (address, n, alignment),
         delete_with_both)
RELEASER(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t",
         (void *address, size_t n, size_t alignment), (address, n, alignment),
         delete_with_both)
RELEASER(delete_one_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t",
         (void *address, size_t alignment, const void *nothrow),
         (address, alignment, nothrow), delete_with_nothrow)
RELEASER(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",
         (void *address, size_t alignment, const void *nothrow),
         (address, alignment, nothrow), delete_with_nothrow)

#define EACH(X)                                                                \
    X(new_one)                                                                 \
    X(new_array)                                                               \
    X(new_one_nothrow)                                                         \
    X(new_array_nothrow)                                                       \
    X(new_one_aligned)                                                         \
    X(new_array_aligned)                                                       \
    X(new_one_aligned_nothrow)                                                 \
    X(new_array_aligned_nothrow)                                               \
    X(delete_one)                                                              \
    X(delete_array)                                                            \
    X(delete_one_sized)                                                        \
    X(delete_array_sized)                                                      \
    X(delete_one_nothrow)                                                      \
    X(delete_array_nothrow)                                                    \
    X(delete_one_aligned)                                                      \
    X(delete_array_aligned)                                                    \
    X(delete_one_sized_aligned)                                                \
    X(delete_array_sized_aligned)                                              \
    X(delete_one_aligned_nothrow)                                              \
    X(delete_array_aligned_nothrow)

void
cpprof__operators_switch(void)
{
    EACH(SWITCH)
}

void
cpprof__operators_find(void)
{
    EACH(FORGET)
}

#endif
