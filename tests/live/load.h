/* SPDX-License-Identifier: MIT */
/*
 * Work of known length, and clocks to hold profiles against.
 */
#ifndef LIVE_LOAD_H
#define LIVE_LOAD_H

#include <stdint.h>
#include <time.h>

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* CPU time of the calling thread, of the whole process (user and system, as
 * getrusage() says), and wall time; in ns. */
uint64_t
thread_cpu_ns(void);
uint64_t
process_cpu_ns(void);
uint64_t
wall_ns(void);

/* How long the calling thread has waited, in ns: it neither ran nor was ready
 * to. Where the kernel does not count the time that a thread is ready and has
 * no processor, that is part of it. Of use as a difference. */
uint64_t
thread_waited_ns(void);

/* An end for calls that are to wait for ever. */
struct timespec
in_an_hour(clockid_t clock);

/* Burn that much CPU time of the calling thread, nearly all of it in user
 * mode. Four functions that do the same under different names, never inlined
 * and never a tail call. */
void
hog_one(uint64_t cpu_ns);
void
hog_two(uint64_t cpu_ns);
void
hog_three(uint64_t cpu_ns);
void
hog_four(uint64_t cpu_ns);

/* A pass of a few microseconds over nothing: for loops with an end of their
 * own. */
uint64_t
churn(uint64_t seed);

/* Keep the compiler from dropping or merging work. */
extern volatile uint64_t load_sink;

#endif
