/* SPDX-License-Identifier: MIT */
/*
 * Where a name is defined in this process, found in the loader's list of
 * modules without the loader: no lock, no allocation, no error state. So it can
 * be asked inside malloc, before any constructor, or in a handler.
 *
 * The list is in load order, which for what is there at the start is the order
 * of lookup too. Of a name that has several versions it is the default one.
 */
#ifndef COLLECT_NEXT_H
#define COLLECT_NEXT_H

#include <link.h>
#include <stdbool.h>

/*
 * The next definition after this library, as dlsym(RTLD_NEXT) finds it; when
 * there is none (this library was loaded late) the first one in front of it;
 * and the module that it is in, unless module is NULL. NULL: nobody else
 * defines it. Safety: AS, unless a module is being unloaded.
 */
void *
cpprof__next_symbol(const char *name, const struct link_map **module);

/* The definition that the program gets, whose module may be this one. */
void *
cpprof__first_symbol(const char *name, const struct link_map **module);

/* Is it this library's text or data, or the program's when it is part of it? */
const struct link_map *
cpprof__own_module(void);

/* Is this library part of the program, or was it linked with it, or with one of
 * its libraries? Otherwise it was only preloaded, or loaded late. */
bool
cpprof__own_is_linked(void);

#endif
