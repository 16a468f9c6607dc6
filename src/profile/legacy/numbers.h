/* SPDX-License-Identifier: MIT */
/*
 * Numbers as Go reads and converts them. The same texts are numbers, the same
 * are refused with the same words, and conversions overflow the same way.
 *
 * Source: Go's strconv.ParseInt, ParseUint; Go on amd64 for conversions.
 */
#ifndef PROFILE_LEGACY_NUMBERS_H
#define PROFILE_LEGACY_NUMBERS_H

#include "base/text.h"
#include "profile/legacy/lines.h"
#include <cpprof/status.h>

/* cpprof__go_uint(). */
static inline const char *
cpprof__parse_uint(struct cpprof__text text, unsigned base, uint64_t *value)
{
    return cpprof__go_uint(text.at, text.n, base, value);
}
/* The same with a sign in front. */
const char *
cpprof__parse_int(struct cpprof__text text, unsigned base, int64_t *value);

/* The error "PREFIXline: strconv.FUNCTION: parsing "word": WRONG". */
enum cpprof_status
cpprof__fail_number(const char *prefix, struct cpprof__text line,
                    const char *function, struct cpprof__text word,
                    const char *wrong, struct cpprof_error *error);

/* parse_int() of a word of a line, with that error. */
enum cpprof_status
cpprof__read_int(struct cpprof__text word, unsigned base, int64_t *value,
                 const char *prefix, struct cpprof__text line,
                 struct cpprof_error *error);

/* For "%.*s", which takes an int: an error has no room for more anyway. */
static inline int
cpprof__print_n(struct cpprof__text text)
{
    return text.n < 4096 ? (int)text.n : 4096;
}

/* Towards zero; what is too large, or no number, is INT64_MIN. */
static inline int64_t
cpprof__truncate(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static inline int64_t
cpprof__wrapping_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* b is not 0. */
static inline int64_t
cpprof__wrapping_quotient(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t) - (uint64_t)a : a / b;
}

#endif
