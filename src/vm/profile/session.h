/* SPDX-License-Identifier: MIT */
/* The one session of interpreted code, from start to stop. */
#ifndef VM_SESSION_H
#define VM_SESSION_H

#include "collect/runtime/life.h"
#include "vm/state/vm.h"

/* The life of profiles of interpreted code (life.h). */
extern struct cpprof__life cpprof__vm_life;

/* Charge the calling thread for what it has run since its last sample. */
void
cpprof__vm_charge_caller(void);

/* The function is gone. */
void
cpprof__vm_session_forget(const struct cpprof_vm *vm, const void *function);

/* In a child made by fork, which has no session. */
void
cpprof__vm_in_child(void);

#endif
