/* SPDX-License-Identifier: MIT */
/* dlclose: after it, addresses may mean other code. */
#include "collect/real.h"
#include "collect/session.h"
#include <cpprof/status.h>

#include <dlfcn.h>

CPPROF_API int
dlclose(void *handle)
{
    typedef int dlclose_fn(void *);
    int result;

    cpprof__session_before_unload();
    result = CPPROF__REAL(dlclose_fn *, dlclose)(handle);
    cpprof__session_after_unload();
    return result;
}
