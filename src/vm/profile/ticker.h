/* SPDX-License-Identifier: MIT */
/* Asks interpreters for samples. */
#ifndef VM_TICKER_H
#define VM_TICKER_H

#include "collect/runtime/periodic.h"

/* A turn: have all that run come to a safepoint. ticker is NULL at the start
 * of a session in mode SPAN, where interpreters are told of it. */
void
cpprof__vm_tick(struct cpprof__periodic *ticker);

#endif
