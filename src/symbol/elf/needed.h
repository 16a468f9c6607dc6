/* SPDX-License-Identifier: MIT */
/*
 * How much of .debug_info has to be unpacked to answer for some addresses: up
 * to the end of the last unit that one of them lies in.
 */
#ifndef SYMBOL_NEEDED_H
#define SYMBOL_NEEDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses of an image. Zero bytes: it is not known which are asked for. */
struct cpprof__wanted {
    uint64_t *at; /* sorted */
    size_t n;
};

/* The number of bytes, as .debug_aranges, of n bytes, tells it; UINT64_MAX:
 * all, or it does not know one of the addresses. */
uint64_t
cpprof__needed_bytes(const void *aranges, size_t n,
                     const struct cpprof__wanted *wanted);

#endif
