/* SPDX-License-Identifier: MIT */
/*
 * In libcpprof-static.a, and in a library for musl: a program that is linked
 * statically has no loader, or one whose libraries bring a second libc, and the
 * plug-ins are linked with glibc. So its profiles have addresses and
 * build ids, and get their names in a report.
 */
#include "object/plug_in.h"

#include "base/status.h"
#include "object/symbolizer.h"

const void *
cpprof__plug_in_load(const char *name, const char *symbol, uint32_t version,
                     struct cpprof_error *error)
{
    cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                 "%s: a program for musl, or one that is linked statically, "
                 "loads no plug-ins",
                 name);
    return NULL;
}

struct cpprof__fetcher cpprof__fetcher;

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    return NULL;
}
