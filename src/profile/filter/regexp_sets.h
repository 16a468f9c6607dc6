/* SPDX-License-Identifier: MIT */
/*
 * Characters of regular expressions: which are digits, letters and so on,
 * whatever the locale, and the sets of them that have names.
 */
#ifndef PROFILE_REGEXP_SETS_H
#define PROFILE_REGEXP_SETS_H

#include "base/buffer.h"

static inline bool
is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static inline bool
is_octal(uint32_t c)
{
    return c >= '0' && c <= '7';
}

static inline bool
is_lower(uint32_t c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool
is_upper(uint32_t c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool
is_alpha(uint32_t c)
{
    return is_lower(c) || is_upper(c);
}

static inline bool
is_alnum(uint32_t c)
{
    return is_alpha(c) || is_digit(c);
}

static inline bool
is_word(uint32_t c)
{
    return is_alnum(c) || c == '_';
}

static inline bool
is_xdigit(uint32_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A set of ASCII characters: is c one of them? */
typedef bool (*cpprof__set_fn)(uint32_t c);

/* The set of [:NAME:], of \d, \s, \w; NULL when there is no such one. */
cpprof__set_fn
cpprof__posix_set(const char *name, size_t n);
cpprof__set_fn
cpprof__perl_set(char name);

/* Write a character, a range, the members of a set or all others, as PCRE2
 * wants them between brackets. fold: case is folded. */
void
cpprof__put_rune(struct cpprof__buffer *out, uint32_t rune);
void
cpprof__put_range(struct cpprof__buffer *out, uint32_t low, uint32_t high);
void
cpprof__put_set(struct cpprof__buffer *out, cpprof__set_fn has, bool fold,
                bool negated);

#endif
