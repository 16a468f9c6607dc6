/* SPDX-License-Identifier: MIT */
/*
 * Lines of text, and what is in them, as the legacy formats have them.
 *
 * Where the reference matches a line with a regular expression, so do we
 * (profile/filter/re2.h). The scanners are for what is simpler: each call
 * removes what it recognizes from the front of the text and returns it.
 */
#ifndef PROFILE_LEGACY_LINES_H
#define PROFILE_LEGACY_LINES_H

#include "base/array.h"
#include "profile/filter/re2.h"

#include <stdint.h>
#include <string.h>

struct cpprof__legacy_lines {
    const char *next, *end;
};

/* The next line without its end ("\n" or "\r\n"); false behind the last. */
bool
cpprof__next_line(struct cpprof__legacy_lines *lines,
                  struct cpprof__text *line);

/* Without ASCII white space at both ends. */
struct cpprof__text
cpprof__trim(struct cpprof__text text);

/* Nothing but white space, or '#' first. */
bool
cpprof__is_space_or_comment(struct cpprof__text line);

/* Does it contain, begin with, a terminated text? */
bool
cpprof__contains(struct cpprof__text line, const char *text);
bool
cpprof__begins(struct cpprof__text line, const char *text);

/* "--- Memory map: ---" or "MAPPED_LIBRARIES:" somewhere in it. */
bool
cpprof__is_maps_sentinel(struct cpprof__text line);

/* ----------------------------------------------------------- scanners ---- */

static inline bool
cpprof__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* As addresses are written: in lower case. */
static inline bool
cpprof__is_hex_digit(char c)
{
    return cpprof__is_digit(c) || (c >= 'a' && c <= 'f');
}

/* The digits of a hexadecimal number in either case. */
static inline bool
cpprof__is_xdigit(char c)
{
    return cpprof__is_hex_digit(c) || (c >= 'A' && c <= 'F');
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

/* -?[0-9]*, which may be a sign alone */
static inline struct cpprof__text
cpprof__take_signed(struct cpprof__text *text)
{
    struct cpprof__text taken = {text->at, 0};

    taken.n = cpprof__take(text, "-");
    taken.n += cpprof__take_digits(text).n;
    return taken;
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

/* What stands behind a match in a line, as far as it is [ x0-9a-f]*, with which
 * the addresses of a stack are written. */
struct cpprof__text
cpprof__stack_behind(struct cpprof__text line, struct cpprof__text match);

static inline bool
cpprof__is_text(struct cpprof__text text, const char *word)
{
    return text.n == strlen(word) && memcmp(text.at, word, text.n) == 0;
}

/*
 * All "0x..." numbers of a text, in lower-case digits, appended. False, with
 * *failed_at the word, when one does not fit 64 bits; true and out->nomem when
 * out of memory. The caller frees out->list.
 */
struct cpprof__legacy_addresses {
    CPPROF__ARRAY(uint64_t) list;
    bool nomem;
};

bool
cpprof__hex_addresses(struct cpprof__text text,
                      struct cpprof__legacy_addresses *out,
                      struct cpprof__text *failed_at);

#endif
