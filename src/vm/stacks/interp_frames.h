/* SPDX-License-Identifier: MIT */
/* Frames of scripts in native stacks. */
#ifndef VM_INTERP_FRAMES_H
#define VM_INTERP_FRAMES_H

#include "vm/state/vm.h"

/* An interpreter tells frames: stacks can have them from here on. */
void
cpprof__vm_mix_begin(void);
/* The script word for a frame (collect/signal/tables/scripts.h). Safety: AS. */
uintptr_t
cpprof__vm_word_of(const struct cpprof_vm *vm,
                   const struct cpprof_vm_peek *frame);
/* At a safepoint of t. */
void
cpprof__vm_flush(struct cpprof__vm_thread *t);
/* t ends. */
void
cpprof__vm_flush_end(struct cpprof__vm_thread *t);
/* In a forked child: drop the parent's deferred stacks. */
void
cpprof__vm_mix_fork_child(void);

/* code.c: which native code is whose. Safety: AS. */
bool
cpprof__vm_is_run_loop(const struct cpprof_vm *vm, uintptr_t pc);
bool
cpprof__vm_is_plumbing(const struct cpprof_vm *vm, uintptr_t pc);
bool
cpprof__vm_is_collector(const struct cpprof_vm *vm, uintptr_t pc);

#endif
