/* SPDX-License-Identifier: MIT */
/* Finds and loads plug-ins: heavy parts that are seldom needed. */
#ifndef OBJECT_PLUG_IN_H
#define OBJECT_PLUG_IN_H

/*
 * Load a plug-in. It is looked for beside the file that this code is in (a
 * build folder, or an installation outside the loader's path), then where it
 * was installed, then where the loader looks. name is that of a file,
 * "libcpprof-symbol.so".
 *
 * Errors: NULL; dlerror() tells of the last place. Safety: MT. Not AS.
 */
void *
cpprof__plug_in_load(const char *name);

#endif
