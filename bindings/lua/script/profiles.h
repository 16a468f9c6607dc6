/* SPDX-License-Identifier: MIT */
/* Profiles by name, and what functions of the module share. */
#ifndef LUA_PROFILES_H
#define LUA_PROFILES_H

#include "../compat.h"
#include <cpprof/status.h>
#include <cpprof/writer.h>

#include <stdbool.h>

/* profile.new, profile.lookup and the heap's, into the table on top. */
void
profiles_open(lua_State *L);
/* nil, and the text. */
int
push_failure(lua_State *L, const struct cpprof_error *error);
/* Make a writer for field "out" of the table at index; false: error is filled.
 */
bool
writer_of(lua_State *L, int index, const char *otherwise,
          struct cpprof_writer *writer, struct cpprof_error *error);

#endif
