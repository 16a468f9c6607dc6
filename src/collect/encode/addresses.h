/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses of this process, one at a time, as its code lies now.
 */
#ifndef COLLECT_ADDRESSES_H
#define COLLECT_ADDRESSES_H

#include <stdint.h>

struct cpprof__addresses;

/* NULL: no memory. Without a symbolizer nothing has a name. */
struct cpprof__addresses *
cpprof__addresses_open(void);

/*
 * What the linker calls the function that pc, an address inside of an
 * instruction, lies in: the innermost of those that were inlined there. NULL:
 * not known. Lives until the next call.
 */
const char *
cpprof__addresses_name(struct cpprof__addresses *addresses, uint64_t pc);

void
cpprof__addresses_close(struct cpprof__addresses *addresses);

#endif
