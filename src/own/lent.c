/* SPDX-License-Identifier: MIT */
/* Memory for a plug-in, from the library that loaded it; from malloc() where
 * that library has none of its own, or nobody lends any. */
#include "own/memory.h"

#include "arch/atomic.h"

#include <stdlib.h>
#include <string.h>
#ifdef CPPROF__DEFLATE_IS_OURS
#include <libdeflate.h>
#endif

static const struct cpprof__memory of_libc = {malloc, calloc, realloc, free};
static const struct cpprof__memory *memory = &of_libc;

void
cpprof__memory_borrow(const struct cpprof__memory *lender)
{
    const struct cpprof__memory *none = &of_libc;

    cas_acq_rel(&memory, &none, lender);
    cpprof__memory_for_deflate();
}

static const struct cpprof__memory *
lender(void)
{
    return load_acquire(&memory);
}

void *
cpprof__malloc(size_t n)
{
    return lender()->malloc(n ? n : 1);
}

void *
cpprof__calloc(size_t n, size_t each)
{
    return n && each ? lender()->calloc(n, each) : lender()->calloc(1, 1);
}

void *
cpprof__realloc(void *old, size_t n)
{
    return lender()->realloc(old, n ? n : 1);
}

void
cpprof__free(void *block)
{
    lender()->free(block);
}

char *
cpprof__strndup(const char *text, size_t n)
{
    size_t n_bytes = strnlen(text, n);
    char *copy = cpprof__malloc(n_bytes + 1);

    if (copy) {
        memcpy(copy, text, n_bytes);
        copy[n_bytes] = 0;
    }
    return copy;
}

char *
cpprof__strdup(const char *text)
{
    return cpprof__strndup(text, strlen(text));
}

size_t
cpprof__memory_bytes(void)
{
    return 0; /* the lender counts */
}

void
cpprof__memory_for_deflate(void)
{
#ifdef CPPROF__DEFLATE_IS_OURS
    libdeflate_set_memory_allocator(cpprof__malloc, cpprof__free);
#endif
}
