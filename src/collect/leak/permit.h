/* SPDX-License-Identifier: MIT */
/* May a child be made that has a copy of this process's memory? */
#ifndef COLLECT_LEAK_PERMIT_H
#define COLLECT_LEAK_PERMIT_H

#include <cpprof/status.h>

/* Errors: CPPROF_UNSUPPORTED, with the reason. */
enum cpprof_status
cpprof__leak_permit(struct cpprof_error *error);

/* Is the heap, below our hooks, glibc's? name: which allocator it is. */
#include <stdbool.h>
bool
cpprof__leak_is_glibc(const char **name);

#endif
