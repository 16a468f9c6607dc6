/* SPDX-License-Identifier: MIT */
/* What happens around a fork, by whichever way it comes. */
#ifndef INTERPOSE_FORK_H
#define INTERPOSE_FORK_H

#include "collect/cpu/session.h"
#include "collect/process/environment.h"

void
cpprof__before_fork(void);
void
cpprof__after_fork_in_parent(void);
void
cpprof__after_fork_in_child(void);

#endif
