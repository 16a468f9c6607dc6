/* SPDX-License-Identifier: MIT */
/* The functions that a state has run, and their names. */
#ifndef LUA_FUNCTIONS_H
#define LUA_FUNCTIONS_H

#include "../compat.h"
#include <cpprof/vm.h>

#include <stdbool.h>
#include <stdint.h>

extern struct cpprof_vm *lua_vm; /* as the library knows it; NULL: not at all */

/* What our coroutine.wrap returns; NULL: there is none of ours. */
extern lua_CFunction function_of_wrap;

/* Known functions, functions.c. */
struct functions {
    struct function **slots;
    uint32_t n_slots; /* a power of two */
    uint32_t n;
    bool is_full; /* forget all before the next walk */
};

#define FUNCTION_NAME_MAX 160

/* The C function at a level; pushes and pops a value. */
lua_CFunction
c_function_at(lua_State *L, lua_Debug *ar);
/* As function_of(), but only finds what is remembered; nothing is changed or
 * pushed. NULL: it is not remembered. hash: the same for the same function, not
 * 0. */
const struct function *
function_known(const struct functions *known, lua_State *L, lua_Debug *ar,
               lua_CFunction c_function, uint64_t *hash);
/* The name that the caller uses; allocates nothing. */
bool
name_by_call(lua_State *L, lua_Debug *ar, char *name);
const char *
file_of(const lua_Debug *ar);

/* The function at a level for which lua_getinfo has answered "Slu". Never NULL.
 */
const struct function *
function_of(struct functions *known, lua_State *L, lua_Debug *ar);
/* The frame that a tail call has replaced. */
extern const struct function tail_called;
/* To be called before a walk: forgets all if too many are remembered. */
void
functions_begin(struct functions *known);
void
functions_free(struct functions *known);
bool
describe_function(void *state, const void *function,
                  struct cpprof_vm_function *what);

#endif
