/* SPDX-License-Identifier: MIT */
/*
 * One symbolizer for the profiles of many processes, which run the same few
 * files: what is read of a file for the first of them serves all. It is a
 * symbolizer with an inner one (object/symbolizer.h), which it keeps when a
 * profile is done with it. A second profile at the same time has one of its
 * own.
 */
#ifndef COLLECT_KEPT_SYMBOLIZER_H
#define COLLECT_KEPT_SYMBOLIZER_H

#include "object/symbolizer.h"

/* NULL as cpprof__symbolizer_load(). Safety: MT. */
const struct cpprof__symbolizer_ops *
cpprof__kept_symbolizer_load(void);

/* Keep it no longer, unless a profile uses it. Safety: MT. */
void
cpprof__kept_symbolizer_free(void);

#endif
