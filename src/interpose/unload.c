/* SPDX-License-Identifier: MIT */
/* dlclose: after it, addresses may mean other code. */
#include "collect/cpu/session.h"
#include "collect/dump/blocked_thread.h"
#include "collect/runtime/exempt.h"
#include "collect/runtime/uncancelled.h"
#include "collect/store/tables.h"
#include "interpose/take_over.h"

#include <dlfcn.h>

static void
before_unload(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    cpprof__session_before_unload();
    cpprof__tables_before_unload();
    cpprof__blocked_thread_unload_begin();
}

static void
after_unload(void)
{
    CPPROF__EXEMPT;
    CPPROF__UNCANCELLED;

    cpprof__blocked_thread_unload_end();
    cpprof__session_after_unload();
    cpprof__tables_after_unload();
    cpprof__find_operators_again();
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
