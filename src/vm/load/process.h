/* SPDX-License-Identifier: MIT */
/* What CPPROF=scripts and CPPROF=vm have to do in the life of the process:
 * nothing more until there is an interpreter. */
#ifndef VM_PROCESS_H
#define VM_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Safety: ONCE; once CPPROF is read. */
void
cpprof__vm_begin(void);

/* A thread of an interpreter was made: the first starts the profile. */
void
cpprof__vm_thread_made(void);

/* The process ends: does a profile run? What the caller has run since its last
 * sample is charged then. */
bool
cpprof__vm_has_to_write(bool in_haste);

/* Write it, by that moment of CLOCK_MONOTONIC; what cannot be written is one
 * line on standard error. On a thread of ours. */
void
cpprof__vm_write(uint64_t until_ns);

/* lua_init.c: a Lua interpreter that starts in this process loads our module,
 * if it is one that reads LUA_INIT. */
void
cpprof__vm_set_lua_init(void);

/* python_path.c: the same for CPython, which reads PYTHONPATH. */
void
cpprof__vm_set_python_path(void);

/* beside.c: a file of ours, in the first of two folders beside the library that
 * has it: where it is installed, or was built. False: neither has. */
bool
cpprof__vm_find_beside(const char *const folders[2], const char *name,
                       char path[PATH_MAX]);

#endif
