/* SPDX-License-Identifier: MIT */
/* Labels of a script, by coroutine. */
#ifndef LUA_LABELS_H
#define LUA_LABELS_H

#include "../state/state.h"

/* labels({k = v}, fn, ...) */
int
labels_call(lua_State *L);
/* Before a resume, when there are labels: those that the coroutine on top of L
 * had when it yielded. Takes it off. */
void
labels_enter(lua_State *L, struct state *s);

#endif
