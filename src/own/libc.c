/* SPDX-License-Identifier: MIT */
/* Memory from malloc(), for programs of our own and for what is loaded into
 * them. Weak: memory.c or lent.c takes its place where it is linked, too. */
#include "own/memory.h"

#include <stdlib.h>
#include <string.h>

#define GIVES_WAY __attribute__((weak))

GIVES_WAY void *
cpprof__malloc(size_t n)
{
    return malloc(n ? n : 1);
}

GIVES_WAY void *
cpprof__calloc(size_t n, size_t each)
{
    return n && each ? calloc(n, each) : calloc(1, 1);
}

GIVES_WAY void *
cpprof__realloc(void *old, size_t n)
{
    return realloc(old, n ? n : 1);
}

GIVES_WAY void
cpprof__free(void *block)
{
    free(block);
}

GIVES_WAY char *
cpprof__strdup(const char *text)
{
    return strdup(text);
}

GIVES_WAY char *
cpprof__strndup(const char *text, size_t n)
{
    return strndup(text, n);
}

GIVES_WAY size_t
cpprof__memory_bytes(void)
{
    return 0;
}

GIVES_WAY void
cpprof__memory_for_deflate(void)
{
}

GIVES_WAY void
cpprof__memory_borrow(const struct cpprof__memory *lender)
{
    (void)lender;
}
