/* SPDX-License-Identifier: MIT */
/* From a stack and its time to records. */
#ifndef VM_SAMPLE_H
#define VM_SAMPLE_H

#include "vm/state/vm.h"

/* Charge the stack of t with value_ns, which then leaves its span_ns;
 * nothing when the session is over. */
void
cpprof__vm_sample(struct cpprof__vm_thread *t, uint32_t epoch,
                  uint64_t value_ns);

#endif
