/* SPDX-License-Identifier: MIT */
/* dlclose: after it, addresses may mean other code. */
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "interpose/parts.h"
#include "interpose/take_over.h"

#include <dlfcn.h>

static void
before_unload(void)
{
    unsigned i;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    for (i = 0; i < CPPROF__N_PARTS; i++)
        if (cpprof__parts[i].before_unload)
            cpprof__parts[i].before_unload();
}

static void
after_unload(void)
{
    unsigned i;
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    for (i = CPPROF__N_PARTS; i--;)
        if (cpprof__parts[i].after_unload)
            cpprof__parts[i].after_unload();
}

TAKE_OVER(dlclose, int, (void *handle), (handle))

static int
dlclose_on(void *handle)
{
    int result;

    before_unload();
    result = cpprof__real(dlclose)(handle);
    after_unload();
    return result;
}
