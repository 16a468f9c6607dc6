/* SPDX-License-Identifier: MIT */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the character that n bytes, at least one, begin with, or 0
 * when they do not begin with one in UTF-8. A zero byte ends every character,
 * so that n may be 4 for a terminated text. */
size_t
cpprof__utf8_next(const char *text, size_t n, uint32_t *rune);

#endif
