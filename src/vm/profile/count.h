/* SPDX-License-Identifier: MIT */
/* How long which stack of an interpreter ran. */
#ifndef VM_COUNT_H
#define VM_COUNT_H

#include "vm/state/vm.h"

/* One native thread stops running `from` and begins with `to`; either may be
 * NULL. Only while a session runs. */
void
cpprof__vm_switch(struct cpprof__vm_thread *from, struct cpprof__vm_thread *to);

/* The session is about to end: charge the calling thread for what it runs. */
void
cpprof__vm_charge_own(uint32_t epoch);

/* Take the time that was given up as unknown. */
uint64_t
cpprof__vm_take_unknown(void);

/* Time of t until now that is in no sample of the session, which is to end.
 * Any thread may ask. */
uint64_t
cpprof__vm_rest(const struct cpprof__vm_thread *t, uint32_t epoch,
                uint64_t now_ns);

/* The session's lock is held: value_ns of t's span_ns was charged. */
void
cpprof__vm_charged(struct cpprof__vm_thread *t, uint64_t value_ns);

#endif
