/* SPDX-License-Identifier: MIT */
/* Finds and loads plug-ins: the heavy parts, needed now and then. */
#ifndef OBJECT_PLUG_IN_H
#define OBJECT_PLUG_IN_H

/*
 * The plug-in beside the file that this code is in (a build folder, or an
 * installation outside the loader's path), where it was installed, or where the
 * loader looks. name is that of a file, "libcpprof-symbol.so".
 *
 * Errors: NULL; dlerror() tells of the last place.
 * Safety: MT. Not AS.
 */
void *
cpprof__plug_in_load(const char *name);

#endif
