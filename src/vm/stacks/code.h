/* SPDX-License-Identifier: MIT */
/* Which native code is whose. Safety: AS. */
#ifndef VM_CODE_H
#define VM_CODE_H

#include "vm/state/vm.h"

bool
cpprof__vm_is_run_loop(const struct cpprof_vm *vm, uintptr_t pc);
bool
cpprof__vm_is_plumbing(const struct cpprof_vm *vm, uintptr_t pc);
bool
cpprof__vm_is_collector(const struct cpprof_vm *vm, uintptr_t pc);

#endif
