/* SPDX-License-Identifier: MIT */
/* The name of a function, from the line on which it is defined. */
#ifndef LUA_SOURCE_NAME_H
#define LUA_SOURCE_NAME_H

#include "../compat.h"

#include <stdbool.h>
#include <stddef.h>

enum source_name { SOURCE_UNKNOWN, SOURCE_ANONYMOUS, SOURCE_NAMED };

/* Find the name; lua_getinfo has answered "S" for ar. called: what its caller
 * calls it, which decides where the line defines several, or "". */
enum source_name
name_by_source(const lua_Debug *ar, const char *called, char *name, size_t n);
/* Does the line define several functions, or is there no source? */
bool
source_is_crowded(const lua_Debug *ar);

#endif
