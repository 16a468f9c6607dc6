/* SPDX-License-Identifier: MIT */
/*
 * What this process is, for who looks at it from outside: the process context
 * of OpenTelemetry, a mapping that is found by its name OTEL_CTX in
 * /proc/PID/maps and read with process_vm_readv(). Published if CPPROF=context
 * asks for it: at the start, and by what a profiled process has made once that
 * has lived for a second.
 *
 * Source: opentelemetry-specification oteps/profiles/4719-process-ctx.md.
 */
#ifndef PUSH_CONTEXT_H
#define PUSH_CONTEXT_H

/* At the start, and in a forked child, which has no such mapping. */
void
cpprof__context_begin(void);

/* A UUID of this process: that of its context, or a new one. Safety: MT. */
void
cpprof__context_instance(char text[37]);

#endif
