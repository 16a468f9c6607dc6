/* SPDX-License-Identifier: MIT */
/*
 * Which units answer for some addresses, and so how much of .debug_info has to
 * be unpacked: up to the end of the last of them.
 */
#ifndef SYMBOL_NEEDED_H
#define SYMBOL_NEEDED_H

#include "symbol/elf/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses of an image. Zero bytes: it is not known which are asked for. */
struct cpprof__wanted {
    uint64_t *at; /* sorted */
    size_t n;
};

/* The units that they lie in. Zero bytes: any. */
struct cpprof__needed {
    uint64_t n_bytes;              /* of .debug_info */
    CPPROF__ARRAY(uint64_t) units; /* where they begin in it, sorted */
};

/* As .debug_aranges, of n bytes, tells it. False: all are, or it does not know
 * one of the addresses; or there is no memory. */
bool
cpprof__needed_find(const void *aranges, size_t n,
                    const struct cpprof__wanted *wanted,
                    struct cpprof__needed *needed);

/* Is the unit that begins there one of them? */
bool
cpprof__needed_has(const struct cpprof__needed *needed, uint64_t unit);

void
cpprof__needed_free(struct cpprof__needed *needed);

#endif
