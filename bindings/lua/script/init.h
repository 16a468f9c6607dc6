/* SPDX-License-Identifier: MIT */
/* The variable LUA_INIT. */
#ifndef LUA_INIT_H
#define LUA_INIT_H

#include "../compat.h"

/* LUA_INIT as it was before libcpprof.so changed it. */
void
init_give_back(void);

#endif
