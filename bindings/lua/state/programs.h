/* SPDX-License-Identifier: MIT */
/* Hooks of the program's own, which ours have replaced. */
#ifndef LUA_PROGRAMS_H
#define LUA_PROGRAMS_H

#include "../compat.h"

#include <stdbool.h>
#include <stdint.h>

/* The hook that the program set itself, which ours has replaced. */
struct program_hook {
    lua_State *of; /* the coroutine; NULL: no entry */
    lua_Hook hook; /* NULL: none */
    int mask;
    int count;
};

/* The entries; see programs.c. Few coroutines have one. */
struct programs {
    struct program_hook *slots; /* NULL: own */
    uint32_t n_slots, n_used;   /* n_used: from the first on; may be free */
    uint32_t is_changing;       /* a handler is to leave it alone */
    uint32_t is_full;
    struct program_hook own[4];
};

struct state;

/* The program's hook of L, while ours is set; hook NULL: none. Safety: AS, in
 * handlers that interrupted the thread of s; so have all of these. */
struct program_hook
program_of(const struct state *s, lua_State *L);
/* False: there is no room now, or L is being changed. */
bool
program_put(struct state *s, const struct program_hook *program);
/* L has its own hook again. */
void
program_remove(struct state *s, lua_State *L);
/* More room, if that was wanted. Not AS. */
void
programs_grow(struct state *s);
void
programs_clear(struct programs *programs);

#endif
