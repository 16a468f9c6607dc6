/* SPDX-License-Identifier: MIT */
/* The handler of the sampling signal, and what the program wants of it. */
#ifndef COLLECT_SIGNAL_HANDLER_H
#define COLLECT_SIGNAL_HANDLER_H

#include <signal.h>
#include <stdint.h>

/* What the program itself wants to happen on the signal; guarded by version,
 * which is odd while it is being written. Who writes makes it odd by
 * compare-and-swap, with signals blocked. */
struct cpprof__user_action {
    uint32_t version;
    struct sigaction action;
};
extern struct cpprof__user_action cpprof__user_action;

/* Ticks of src/vm are answered by this function, which gets the timer's value.
 * NULL: there are none. Safety of the call: AS. */
extern void (*cpprof__script_tick)(uint64_t value);

/* The handler, for sigaction with SA_SIGINFO. Safety: AS. */
void
cpprof__on_signal(int signo, siginfo_t *info, void *context);

#endif
