/* SPDX-License-Identifier: MIT */
/* Finds and loads plug-ins: heavy parts that are seldom needed. */
#ifndef OBJECT_PLUG_IN_H
#define OBJECT_PLUG_IN_H

#include <cpprof/status.h>

/*
 * Load libcpprof-NAME.so and return its table of functions, `symbol`, which
 * begins with the version of their contract, a uint32_t. The file is looked for
 * beside the one that this code is in (a build folder, or an installation
 * outside the loader's path), then where it was installed, then where the
 * loader looks.
 *
 * Errors:  NULL with CPPROF_UNSUPPORTED: it is not there, or another version.
 * Safety:  MT. Not AS.
 */
const void *
cpprof__plug_in_load(const char *name, const char *symbol, uint32_t version,
                     struct cpprof_error *error);

#endif
