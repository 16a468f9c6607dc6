/* SPDX-License-Identifier: MIT */
/* What CPPROF=scripts and CPPROF=vm have to do in the life of the process:
 * nothing more until there is an interpreter. */
#ifndef VM_PROCESS_H
#define VM_PROCESS_H

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

/* modules.c: Lua and CPython load our modules when they start in this
 * process. */
void
cpprof__vm_set_variables(void);

#endif
