/* SPDX-License-Identifier: MIT */
/* The native code that the interpreter runs scripts with. */
#ifndef LUA_RUN_LOOP_H
#define LUA_RUN_LOOP_H

#include <stdbool.h>

/* Learn them, once in a process; false: stacks stay native. */
bool
run_loop_learn(void);

#endif
