/* SPDX-License-Identifier: MIT */
/* The handler of the sampling signal. */
#ifndef COLLECT_SIGNAL_HANDLER_H
#define COLLECT_SIGNAL_HANDLER_H

#include <signal.h>
#include <stdint.h>

/* libc's own handler of the signal, which gets what is not ours. */
extern void (*cpprof__libc_handler)(int signo, siginfo_t *info, void *context);

/* Ticks of src/vm are answered by this function, which gets the timer's value.
 * NULL: there are none. Safety of the call: AS. */
extern void (*cpprof__script_tick)(uint64_t value);

/* With SA_SIGINFO. Safety: AS. */
void
cpprof__on_signal(int signo, siginfo_t *info, void *context);

#endif
