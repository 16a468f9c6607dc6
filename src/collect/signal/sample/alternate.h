/* SPDX-License-Identifier: MIT */
/*
 * Programs in which our signal may use no alternate stack.
 *
 * It uses that of a thread that has one (SA_ONSTACK), as libc's own does: Go,
 * OCaml and Erlang run on stacks that are too small for any handler. The flag
 * is one for all threads, and the kernel writes its frame before a handler can
 * decide. Two kinds of programs bear no tick there, and from the moment that
 * one is known for that our signal has no such flag in its process, for good:
 *
 *   - a coroutine was made on the stack: a handler of the program that ran
 *     there has returned and is to be jumped to, and a tick would be written
 *     over what it left (GNU Pth, libcoro, QEMU). The thread blocks a signal
 *     whose handler uses the stack as it sets that, and will have it delivered
 *     there when it is ready. Who blocks all signals is not meant, that is how
 *     runtimes start threads;
 *   - two threads have the same stack, for a report of a crash that ends the
 *     process (varnishd): two ticks would be written over each other. Another
 *     thread that lives was the last that set the stack, or had a tick on it.
 *     The latter is no proof where a runtime hands stacks on by bare system
 *     calls (Go), and does not count there.
 *
 * Source: sigaltstack(2), tgkill(2).
 */
#ifndef COLLECT_ALTERNATE_H
#define COLLECT_ALTERNATE_H

#include <signal.h>
#include <stdbool.h>

/* The calling thread is about to have this stack, or (NULL) none; it had the
 * other one, or NULL. Safety: AS. */
void
cpprof__alternate_before(const void *stack, const void *had);

/* Of a handler's context: the thread's alternate stack, if there is one. It
 * makes system calls. Safety: AS. */
void
cpprof__alternate_note(const stack_t *stack);

/* No alternate stack may be used. Safety: AS. */
bool
cpprof__alternate_is_left(void);

/* Take the flag from our signal, if ours is installed. Safety: AS. */
void
cpprof__alternate_leave(void);

#endif
