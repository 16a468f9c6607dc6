/* SPDX-License-Identifier: MIT */
/* The debug hooks that ask a script where it is. */
#ifndef LUA_HOOKS_H
#define LUA_HOOKS_H

#include "../state/state.h"

#include <stdbool.h>

/* Set the hook that the running profile needs, keeping the program's own.
 * May be called in a signal handler of the thread that runs L. */
void
hook_for_tick(struct state *s, lua_State *L);
void
hook_for_spans(struct state *s, lua_State *L);
/* The same in mode SPAN, and the next instruction is an event. */
void
hook_for_instruction(struct state *s, lua_State *L);

/* L is about to run: with the hook that the profile and s have now. */
void
hook_for_switch(struct state *s, lua_State *L);
/* In mode TICK or CPU: see the end of sleeps from here on. */
void
hook_for_sleeps(struct state *s);
/* Is it there? */
bool
hook_is_for_spans(lua_State *L);
/* Put the program's own hook in the place of ours; and put ours there again. */
void
hook_remove(struct state *s, lua_State *L);
void
hook_again(struct state *s, lua_State *L);
/* co was made by L: it has the program's hook of L, not ours. */
void
hook_for_new(struct state *s, lua_State *L, lua_State *co);

#endif
