/* SPDX-License-Identifier: MIT */
/*
 * Scanners that take a line apart from the front: each call removes what it
 * recognizes from the text and returns it. Where the reference searches a line
 * for a regular expression, the caller tries every start position.
 */
#ifndef PROFILE_LEGACY_SCAN_H
#define PROFILE_LEGACY_SCAN_H

#include "profile/legacy/lines.h"

#include <string.h>

static inline bool
cpprof__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool
cpprof__is_hex_digit(char c)
{
    return cpprof__is_digit(c) || (c >= 'a' && c <= 'f');
}

static inline void
cpprof__skip(struct cpprof__text *text, size_t n)
{
    text->at += n;
    text->n -= n;
}

/* A terminated word, all of it or nothing. */
static inline bool
cpprof__take(struct cpprof__text *text, const char *word)
{
    if (!cpprof__begins(*text, word))
        return false;
    cpprof__skip(text, strlen(word));
    return true;
}

/* As many characters as are of a kind. */
static inline struct cpprof__text
cpprof__take_while(struct cpprof__text *text, bool (*is)(char))
{
    struct cpprof__text taken = {text->at, 0};

    while (taken.n < text->n && is(text->at[taken.n]))
        taken.n++;
    cpprof__skip(text, taken.n);
    return taken;
}

static inline struct cpprof__text
cpprof__take_digits(struct cpprof__text *text)
{
    return cpprof__take_while(text, cpprof__is_digit);
}

/* Spaces only; true where there is one. */
static inline bool
cpprof__take_spaces(struct cpprof__text *text)
{
    size_t n = 0;

    while (n < text->n && text->at[n] == ' ')
        n++;
    cpprof__skip(text, n);
    return n != 0;
}

/* [ x0-9a-f]*: what the addresses of a stack are written with. */
static inline bool
cpprof__is_of_stack(char c)
{
    return c == ' ' || c == 'x' || cpprof__is_hex_digit(c);
}

static inline bool
cpprof__is_text(struct cpprof__text text, const char *word)
{
    return text.n == strlen(word) && memcmp(text.at, word, text.n) == 0;
}

#endif
