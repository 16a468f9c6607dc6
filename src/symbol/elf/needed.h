/* SPDX-License-Identifier: MIT */
/*
 * Which units answer for some addresses, and so how much of .debug_info has to
 * be unpacked: up to the end of the last of them. libdw gets these units alone,
 * because it looks at each that is in front of one it is asked about.
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
    bool are_offsets; /* in its file, in any order: it is not open yet */
};

/* The number of the first of them from `at` on. */
size_t
cpprof__wanted_from(const struct cpprof__wanted *wanted, uint64_t at);

/* The units that they lie in. Zero bytes: any. */
struct cpprof__needed {
    uint64_t n_bytes; /* of .debug_info; UINT64_MAX: the last one is needed */
    CPPROF__ARRAY(uint64_t) units; /* where they begin in it, sorted */
};

/* As .debug_aranges, of n bytes, tells it. False: all are, or it does not know
 * one of the addresses; or there is no memory. */
bool
cpprof__needed_find(const void *aranges, size_t n,
                    const struct cpprof__wanted *wanted,
                    struct cpprof__needed *needed);

/* What is read for them. */
struct cpprof__picked {
    void *info; /* from malloc */
    uint64_t n_info;
    uint64_t n_abbrev; /* of .debug_abbrev; UINT64_MAX: all of it */
};

/* More than the head of a unit, in bytes. */
#define CPPROF__UNIT_HEAD 32

/*
 * Take the needed units out of the first n bytes of .debug_info, which go up to
 * the end of the last one, and to the head of the next if there is one. In
 * front of them comes the largest unit of these bytes: whether functions may be
 * inlined is a matter of its language, which one of assembly does not tell.
 * False: not all of them are there, or there is no memory.
 */
bool
cpprof__needed_pick(const struct cpprof__needed *needed, const void *info,
                    uint64_t n, struct cpprof__picked *picked);

void
cpprof__needed_free(struct cpprof__needed *needed);

#endif
