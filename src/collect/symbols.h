/* SPDX-License-Identifier: MIT */
/* The symbolizer plug-in, loaded the first time a profile is written. */
#ifndef COLLECT_SYMBOLS_H
#define COLLECT_SYMBOLS_H

#include "object/symbolizer.h"

/* NULL when libcpprof-symbol.so is not there or is another version; profiles
 * then carry addresses and build ids. */
const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void);

#endif
