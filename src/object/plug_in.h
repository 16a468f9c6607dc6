/* SPDX-License-Identifier: MIT */
/* Finds and loads plug-ins: heavy parts that are seldom needed. */
#ifndef OBJECT_PLUG_IN_H
#define OBJECT_PLUG_IN_H

#include <cpprof/status.h>

/*
 * Load libcpprof-NAME.so and return its table of functions, `symbol`, which
 * begins with the version of their contract, a uint32_t. The file is looked for
 * from the one that this code is in: beside it (a build folder), and where an
 * installation has plug-ins, wherever it was moved. Then where it was to be
 * installed, then where the loader looks.
 *
 * Errors:  NULL with CPPROF_UNSUPPORTED: it is not there, or another version.
 * Safety:  MT. Not AS.
 */
const void *
cpprof__plug_in_load(const char *name, const char *symbol, uint32_t version,
                     struct cpprof_error *error);

#endif
