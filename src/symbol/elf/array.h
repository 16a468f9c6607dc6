/* SPDX-License-Identifier: MIT */
/* Arrays of what an image has, which may be hostile: base/array.h, bounded. */
#ifndef SYMBOL_ARRAY_H
#define SYMBOL_ARRAY_H

#include "base/array.h"

/* No image has as many of anything; bounds what a hostile one can cost. */
#define CPPROF__ARRAY_MOST ((size_t)16 << 20)

/* Room for one more element; false when out of memory or at the bound. */
#define CPPROF__BOUNDED_ROOM(a)                                                \
    ((a)->n < CPPROF__ARRAY_MOST && CPPROF__ARRAY_ROOM(a, 1))

#endif
