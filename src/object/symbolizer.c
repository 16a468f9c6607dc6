/* SPDX-License-Identifier: MIT */
/* Loads the symbolizer plug-in. */
#include "object/symbolizer.h"

#include "object/plug_in.h"

#include <dlfcn.h>

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    const struct cpprof__symbolizer_ops *ops;
    void *plug_in = cpprof__plug_in_load("libcpprof-symbol.so");

    if (!plug_in)
        return NULL;
    ops = dlsym(plug_in, CPPROF__SYMBOLIZER_SYMBOL);
    return ops && ops->abi == CPPROF__SYMBOLIZER_ABI ? ops : NULL;
}
