/* SPDX-License-Identifier: MIT */
/* What the calls of <cpprof/pprof/symbolize.h> share: options and warnings. */
#ifndef SYMBOLIZE_WARN_H
#define SYMBOLIZE_WARN_H

#include <cpprof/pprof/symbolize.h>

/* The caller's options, which may be NULL, with defaults for what they lack.
 * Errors: CPPROF_INVALID. */
enum cpprof_status
cpprof__symbolize_take(const struct pprof_symbolize_options *given,
                       struct pprof_symbolize_options *options,
                       struct cpprof_error *error);

/* Warn, if anybody wants to know. Of two KiB at most; longer texts are cut. */
void
cpprof__symbolize_warn(const struct pprof_symbolize_options *options,
                       const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
