/* SPDX-License-Identifier: MIT */
/*
 * Perf events as the rest of the process sees them: who needs them to stop asks
 * the drainer, in whose table of descriptors they are.
 */
#ifndef COLLECT_EVENTS_H
#define COLLECT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Wait until the drainer has tended all events once more, a second at most. */
void
cpprof__events_ask(void);

/* By the drainer: how often it was asked, before it tends them, and after. */
uint32_t
cpprof__events_asked(void);
void
cpprof__events_tell_tended(uint32_t asked);

void
cpprof__events_in_child(void);

#endif
