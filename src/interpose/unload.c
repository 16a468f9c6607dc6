/* SPDX-License-Identifier: MIT */
/* dlclose: after it, addresses may mean other code. */
#include "collect/exempt.h"
#include "collect/real.h"
#include "collect/session.h"
#include "collect/sleeper.h"
#include "collect/tables.h"
#include "interpose/heap.h"
#include <cpprof/status.h>

#include <dlfcn.h>
#include <pthread.h>

static void
before_unload(void)
{
    CPPROF__EXEMPT;

    cpprof__session_before_unload();
    cpprof__tables_before_unload();
    cpprof__sleeper_unload_begin();
}

static void
after_unload(void)
{
    CPPROF__EXEMPT;

    cpprof__sleeper_unload_end();
    cpprof__session_after_unload();
    cpprof__tables_after_unload();
    cpprof__heap_after_unload();
}

CPPROF_API int
dlclose(void *handle)
{
    typedef int dlclose_fn(void *);
    int result, cancel;

    /* What we do here must not become a point of cancellation. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    before_unload();
    pthread_setcancelstate(cancel, NULL);
    result = CPPROF__REAL(dlclose_fn *, dlclose)(handle);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    after_unload();
    pthread_setcancelstate(cancel, NULL);
    return result;
}
