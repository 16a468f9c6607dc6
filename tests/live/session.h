/* SPDX-License-Identifier: MIT */
/*
 * Profiling of the test program by itself: start, stop, read.
 */
#ifndef LIVE_SESSION_H
#define LIVE_SESSION_H

#include "profile.h"

#include <cpprof/cpprof.h>

/* The engine that this run of the program is about, from argv[1]: "auto",
 * "perf" or "timer". Ends the program with a skip where the engine
 * is not allowed. */
void
session_engine(int argc, char **argv);
extern enum cpprof_engine engine;
extern const char *engine_name;

/* Where this program may write; removed when it exits. */
const char *
scratch(void);
/* A path in there; the last four are remembered. */
const char *
scratch_path(const char *name);

/* Options with the engine of this run; rate_hz 0 for the default. */
struct cpprof_cpu_options
session_options(uint32_t rate_hz);

/* Start to profile into a file in scratch(), or bail out; stop and read it. */
void
session_start(uint32_t rate_hz);
void
session_start_with(const struct cpprof_cpu_options *options);
struct profile *
session_stop(void);

/*
 * Run work(seconds) under the profiler, first for `first` seconds, then twice
 * as long, up to `last`, until good(profile) is true: a claim that chance may
 * break is asked again of more samples, not loosened. Returns the last profile.
 */
struct profile *
session_until(uint32_t rate_hz, double first, double last,
              void (*work)(double seconds),
              bool (*good)(const struct profile *));

/* The same, but samples add up: each further run is as long as all before it
 * together, up to `last` in all, and good() has the samples of all runs. What
 * work() says of itself must be of all runs, too. */
struct profile *
session_adding(uint32_t rate_hz, double first, double last,
               void (*work)(double seconds),
               bool (*good)(const struct profile *));

#endif
