/* SPDX-License-Identifier: MIT */
/*
 * Probes for who profiles memory from outside, by eBPF or a debugger: USDT of
 * the provider otel_memory, as OpenTelemetry proposes them. A reader finds them
 * as notes of the file, and raises the semaphore of those that it listens to.
 * They fire only if CPPROF=probes asked for them, too: each costs some
 * microseconds.
 *
 * Source: opentelemetry-ebpf-profiler design-docs/00003-memory-profiling;
 * systemtap, sys/sdt.h, of version 3.
 */
#ifndef COLLECT_SIGNAL_PROBES_H
#define COLLECT_SIGNAL_PROBES_H

#include <stdint.h>

extern uint32_t cpprof__has_probes; /* 1: they were asked for */

/* A sampled block: address, size, and the bytes that it stands for. And the end
 * of such a block. Safety: AS. */
void
cpprof__probe_alloc(uintptr_t address, uint64_t bytes, uint64_t weighted);
void
cpprof__probe_free(uintptr_t address);

#endif
