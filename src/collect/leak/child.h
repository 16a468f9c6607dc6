/* SPDX-License-Identifier: MIT */
/* The child that looks for what is lost, in the memory of one moment. */
#ifndef COLLECT_LEAK_CHILD_H
#define COLLECT_LEAK_CHILD_H

#include "collect/leak/shared.h"

/* To be called in a child made by a bare clone(), with all signals blocked; it
 * ends the child. Calls nothing that allocates by malloc or takes a lock. */
_Noreturn void
cpprof__leak_child(struct cpprof__leak_shared *shared);

#endif
