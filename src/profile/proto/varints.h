/* SPDX-License-Identifier: MIT */
/* Decodes runs of varints, which most bytes of a profile are. */
#ifndef PROFILE_VARINTS_H
#define PROFILE_VARINTS_H

#include <stddef.h>
#include <stdint.h>

/* Written behind the last number, and not part of it. */
#define CPPROF__VARINTS_SLACK 2

/*
 * Decode all varints of n bytes into out, which has room for n numbers and
 * CPPROF__VARINTS_SLACK more. Returns how many there are, or SIZE_MAX when one
 * is damaged, longer than four bytes or 2^28 and above: then the caller does
 * it the slow way.
 */
size_t
cpprof__varints(const uint8_t *data, size_t n, uint32_t *out);

#endif
