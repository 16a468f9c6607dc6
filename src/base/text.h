/* SPDX-License-Identifier: MIT */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

/* Characters and numbers in texts, which need no end. */

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the character that n bytes, at least one, begin with, or 0
 * when they do not begin with one in UTF-8. A zero byte ends every character,
 * so that n may be 4 for a terminated text. */
size_t
cpprof__utf8_next(const char *text, size_t n, uint32_t *rune);

/* Is all of it UTF-8? A zero byte is a character. */
bool
cpprof__is_utf8(const char *text, size_t n);

/* Append n bytes with U+FFFD for each that is not UTF-8; zero bytes are. */
void
cpprof__put_utf8(struct cpprof__buffer *out, const char *text, size_t n);

/* Put '?' for each byte that a terminal may obey: controls of ASCII, those of
 * Latin-1 as UTF-8 has them, and all that is not UTF-8. */
void
cpprof__clean_text(char *text);

/* The value of a digit of any base up to 36, in either case; 36 for any other
 * character. */
static inline unsigned
cpprof__digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10 : 36;
}

/*
 * base  10 or 16; or 0: by the prefix 0x, 0o, 0b or 0, else 10, and underscores
 *       between digits.
 *
 * Returns NULL; or what is wrong, "invalid syntax", *value then 0, or "value
 * out of range", *value then the largest. Source: Go's strconv.ParseUint.
 */
const char *
cpprof__go_uint(const char *text, size_t n, unsigned base, uint64_t *value);

/* A number from 1 to `most`, which is all of the text. */
bool
cpprof__parse_count(const char *text, uint32_t most, uint32_t *count);

/* A number of bytes, 0 to `most`, maybe with k, m or g behind it. */
bool
cpprof__parse_bytes(const char *text, uint64_t most, int64_t *bytes);

/* Append text as a part of a URL: all but unreserved characters (RFC 3986, 2.3)
 * and those of `more` as "%2F". */
void
cpprof__put_escaped(struct cpprof__buffer *out, const char *text, size_t n,
                    const char *more);

/* The first of some "KEY=VALUE,KEY=VALUE", percent-encoded, that is none: it
 * has no '=', no key, or a percent sign without two digits. Members of blanks
 * are skipped. NULL: all are well; else it has *n bytes. */
const char *
cpprof__bad_member(const char *members, size_t *n);

/*
 * How much of a symbol of n bytes is the function's name: without "@VERSION"
 * and without what GCC and LLVM append to the copies they make (".cold",
 * ".constprop.0", ".isra.0", ".part.0", ".llvm.123", ...).
 */
size_t
cpprof__symbol_source_length(const char *symbol, size_t n);

#endif
