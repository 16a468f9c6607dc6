/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses of this process, one at a time, in the mappings that it
 * has now.
 */
#ifndef COLLECT_ADDRESSES_H
#define COLLECT_ADDRESSES_H

#include <stdint.h>

struct cpprof__addresses;

/* NULL: no memory. Without a symbolizer nothing has a name. */
struct cpprof__addresses *
cpprof__addresses_open(void);

/*
 * The linker's name of the function at pc, an address inside an instruction; of
 * inlined functions the innermost one. NULL: not known. The text lives until
 * the next call.
 */
const char *
cpprof__addresses_name(struct cpprof__addresses *addresses, uint64_t pc);

void
cpprof__addresses_close(struct cpprof__addresses *addresses);

#endif
