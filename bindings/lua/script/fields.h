/* SPDX-License-Identifier: MIT */
/* Fields of tables that are arguments. */
#ifndef LUA_FIELDS_H
#define LUA_FIELDS_H

#include "../compat.h"

#include <stdbool.h>

/* The field of the table at index, if that is a table. An absent field is
 * `otherwise`. */

struct whole {
    int64_t least, most; /* up to 2^53 */
};

/* Has the table only these fields? names ends with NULL. */
void
fields_check(lua_State *L, int index, const char *const *names);
int64_t
field_whole(lua_State *L, int index, const char *name, int64_t otherwise,
            const struct whole *bounds);
bool
field_flag(lua_State *L, int index, const char *name, bool otherwise);
/* The index of one of three words; of the first one, if the field is absent. */
int
field_word(lua_State *L, int index, const char *name, const char *const *words);
/* Leaves the value on the stack, which holds it. */
const char *
field_text(lua_State *L, int index, const char *name, const char *otherwise);

#endif
